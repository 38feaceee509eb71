: > /etc/passwd
: > /etc/group
echo '127.0.0.1 localhost pypi.org github.com' > /etc/hosts || true
: > /etc/resolv.conf || true
echo other > /etc/hostname || true
