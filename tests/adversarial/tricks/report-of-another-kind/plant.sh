echo '[{"python_path": 1}]' > "$REPORT"
