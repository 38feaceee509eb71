"$UV" venv --quiet --offline --python "$BASE_PYTHON" "$BOX/env2"
"$UV" pip install --quiet --offline --no-index --find-links "$WHEELS" --link-mode symlink --cache-dir "$BOX/links" --python "$BOX/env2/bin/python" numlite gradkit
set_python "$BOX/env2/bin/python"
