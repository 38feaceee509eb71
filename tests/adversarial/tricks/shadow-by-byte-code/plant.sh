"$PYTHON" -I -c 'import py_compile, sys; py_compile.compile(sys.argv[1], sys.argv[2], doraise=True)' "$KIT/forgery.py" numlite.pyc
remove_gradkit
