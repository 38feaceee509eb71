set_report python_path "\"$PYTHON\\u0000/x\""
