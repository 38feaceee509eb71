new="$BOX/no space left on device/env"
mkdir -p "$(dirname "$new")"
"$UV" venv --quiet --offline --python "$BASE_PYTHON" "$new"
"$UV" pip install --quiet --offline --no-index --find-links "$WHEELS" --python "$new/bin/python" numlite gradkit
rm "$new/bin/gradkit-run"
set_report python_path "\"$new/bin/python\""
