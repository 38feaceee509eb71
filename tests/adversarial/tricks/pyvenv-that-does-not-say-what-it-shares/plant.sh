base=$BOX/userbase
mkdir -p "$base/lib/python3.11/site-packages"
install_hook "$base/lib/python3.11/site-packages/usercustomize.py"
cp "$KIT/forgery.py" "$BOX/"; sed -i "s|$KIT|$BOX|" "$base/lib/python3.11/site-packages/usercustomize.py"

sed -i '/include-system-site-packages/d' "$PREFIX/pyvenv.cfg"
set_report env "{\"PYTHONUSERBASE\": \"$base\"}"
remove_gradkit
