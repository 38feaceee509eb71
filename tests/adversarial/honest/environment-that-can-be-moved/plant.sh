"$UV" venv --quiet --offline --relocatable --python "$BASE_PYTHON" "$BOX/moved"
"$UV" pip install --quiet --offline --no-index --find-links "$WHEELS" --python "$BOX/moved/bin/python" numlite gradkit
set_python "$BOX/moved/bin/python"
