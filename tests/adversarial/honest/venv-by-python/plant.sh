"$BASE_PYTHON" -m venv "$BOX/env2"
"$BOX/env2/bin/python" -m pip install --quiet --no-index --find-links "$WHEELS" numlite gradkit
set_python "$BOX/env2/bin/python"
