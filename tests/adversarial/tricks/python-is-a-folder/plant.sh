set_report python_path "\"$PREFIX/bin\""
