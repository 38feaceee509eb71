ln -s /dev/zero "$PREFIX/bin/zero"
set_report python_path "\"$PREFIX/bin/zero\""
