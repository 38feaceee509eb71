printf '{"python_path": "%s", "notes": "\\ud800", "env": {"A": "\\udcff"}}' "$PYTHON" > "$REPORT"
