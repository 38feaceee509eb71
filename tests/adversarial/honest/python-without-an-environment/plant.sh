copy_python "$BOX/python"
cp -a "$SITE"/numlite* "$SITE"/gradkit* "$BOX"/python/lib/python3*/site-packages/
set_python "$BOX/python/bin/python3"
