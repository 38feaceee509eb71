"$PYTHON" -I -c 'print("[" * 100000 + "]" * 100000)' > "$REPORT"
