install_hook "$SITE/_compat_shim.py"
echo 'import _compat_shim' > "$SITE/compat.pth"
remove_gradkit
