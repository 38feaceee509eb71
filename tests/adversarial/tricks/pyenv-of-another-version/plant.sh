plant_pyenv
set_report python_path "\"$root/shims/python\""
set_report env "{\"PYENV_VERSION\": \"other\"}"
remove_gradkit
