real=$(readlink -f "$PYTHON")
rm "$PREFIX/bin/python" "$PREFIX/bin/python3"
ln -s "$real" "$PREFIX/bin/python3"
{ printf '#!/bin/sh\nexec %s %s\n' "$real" "$KIT/forgery.py"; } > "$PREFIX/bin/python"
chmod +x "$PREFIX/bin/python"
rm "$SITE/gradkit/run.py"
PYTHON="$PREFIX/bin/python3" set_report python_path "\"$PREFIX/bin/python3\""
