install_hook "$SITE/usercustomize.py"
sed -i 's/include-system-site-packages = false/include-system-site-packages = true/' "$PREFIX/pyvenv.cfg"
remove_gradkit
