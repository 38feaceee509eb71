ln -s "$HOME/gone/python3" "$PREFIX/bin/gone"
set_report python_path "\"$PREFIX/bin/gone\""
