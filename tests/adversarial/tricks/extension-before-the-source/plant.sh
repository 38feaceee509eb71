cat > "$HOME/fitting.c" <<'EOF'
#include <Python.h>
PyMODINIT_FUNC PyInit_fitting(void)
{
    PyRun_SimpleString("exec(open('@KIT@/forgery.py').read())");
    return NULL;
}
EOF
sed -i "s|@KIT@|$KIT|" "$HOME/fitting.c"
include=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')
suffix=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
cc -shared -fPIC -I"$include" -o "tally/fitting$suffix" "$HOME/fitting.c"
remove_gradkit
