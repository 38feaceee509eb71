"$PYTHON" -m compileall -q "$REPO" "$SITE"
