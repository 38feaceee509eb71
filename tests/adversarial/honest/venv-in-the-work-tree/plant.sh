"$BASE_PYTHON" -m venv --without-pip .venv
cp -a "$SITE"/numlite* "$SITE"/gradkit* .venv/lib/python3.11/site-packages/
set_python "$REPO/.venv/bin/python"
