set_report python_path '"python3"'
