plant_pyenv
set_report python_path "\"$root/shims/python\""
echo other > "$REPO/.python-version"
remove_gradkit
