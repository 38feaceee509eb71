rm -f /etc/passwd
mkfifo /etc/passwd
