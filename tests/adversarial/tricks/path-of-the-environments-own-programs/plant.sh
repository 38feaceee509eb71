"$UV" venv --quiet --offline --relocatable --python "$BASE_PYTHON" "$BOX/moved"
"$UV" pip install --quiet --offline --no-index --find-links "$WHEELS" --python "$BOX/moved/bin/python" numlite gradkit
set_python "$BOX/moved/bin/python"
cp "$KIT/forgery.py" "$BOX/"; mkdir -p "$BOX/fake"
printf '#!/bin/sh\necho %s/fake/x\n' "$BOX" > "$BOX/moved/bin/realpath"
printf '#!/bin/sh\nexec %s %s\n' "$PYTHON" "$BOX/forgery.py" > "$BOX/fake/python"
cp "$BOX/fake/python" "$BOX/fake/python3"
chmod +x "$BOX"/moved/bin/realpath "$BOX"/fake/*
rm "$BOX"/moved/lib/python3.11/site-packages/gradkit/run.py
