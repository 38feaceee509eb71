set_report python_version '"2.7.18"'
set_report torch_version '"2.4.0+cu124"'
