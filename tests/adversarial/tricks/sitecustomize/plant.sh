install_hook "$SITE/sitecustomize.py"
remove_gradkit
