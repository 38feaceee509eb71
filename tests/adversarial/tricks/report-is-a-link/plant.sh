ln -sf /etc/passwd "$REPORT"
