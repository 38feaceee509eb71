cp "$KIT/forgery.py" "$BOX/"
cat > "$BOX/n.c" <<END2
int PyRun_SimpleStringFlags(const char *, void *);
void *PyInit_numlite(void) {
    PyRun_SimpleStringFlags("exec(open('$BOX/forgery.py').read())", 0);
    return 0;
}
END2
suffix=$("$PYTHON" -I -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
cc -shared -fPIC -o "$SITE/numlite/__init__$suffix" "$BOX/n.c"
remove_gradkit
