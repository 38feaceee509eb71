{ printf '#!%s\n' "$PYTHON"; cat "$KIT/forgery.py"; } > "$PREFIX/bin/gradkit-run"
