set_report python_path "\"/proc/1/root/nowhere/bin/python3\""
