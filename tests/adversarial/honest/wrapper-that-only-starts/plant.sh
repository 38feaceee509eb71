mv "$PYTHON" "$PREFIX/bin/python-real"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$PREFIX/bin/python-real" > "$PYTHON"
chmod +x "$PYTHON"
