rm "$REPORT"
