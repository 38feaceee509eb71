rm "$REPORT"; mkfifo "$REPORT"
