rm -f /lib64/ld-linux-x86-64.so.2 /lib/x86_64-linux-gnu/libc.so.6
