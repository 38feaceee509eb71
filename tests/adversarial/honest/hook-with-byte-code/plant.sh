printf '"""Nothing."""\n' > "$SITE/sitecustomize.py"
"$PYTHON" -c 'import compileall, py_compile, sys; compileall.compile_dir(sys.argv[1], quiet=1, force=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)' "$SITE"
