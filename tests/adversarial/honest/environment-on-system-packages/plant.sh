/usr/bin/python3 -m venv --without-pip --system-site-packages "$BOX/env2"
cp -a "$SITE"/numlite* /usr/lib/python3/dist-packages/
cp -a "$SITE"/gradkit* "$BOX"/env2/lib/python3*/site-packages/
set_python "$BOX/env2/bin/python"
