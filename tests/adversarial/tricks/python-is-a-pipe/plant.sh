mkfifo "$PREFIX/bin/pipe"
chmod +x "$PREFIX/bin/pipe"
set_report python_path "\"$PREFIX/bin/pipe\""
