echo 'ln -sf /etc/passwd "$6"' | replace_python
