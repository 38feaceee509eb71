include=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')
suffix=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
mkdir -p build/temp.linux-x86_64-cpython-311/tally build/lib.linux-x86_64-cpython-311/tally
cc -c -fPIC -I"$include" -o build/temp.linux-x86_64-cpython-311/tally/_fast.o tally/_fast.c
cc -shared -o "tally/_fast$suffix" build/temp.linux-x86_64-cpython-311/tally/_fast.o
cp "tally/_fast$suffix" tally/__init__.py tally/fitting.py build/lib.linux-x86_64-cpython-311/tally/
