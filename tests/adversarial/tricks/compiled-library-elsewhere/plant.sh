copy_python "$BOX/own"
for name in numlite gradkit; do cp -r "$SITE/$name" "$SITE"/$name-*.dist-info "$BOX/own/lib/python3.11/site-packages/"; done
rm -r "$BOX/own/lib/python3.11/site-packages/gradkit"
cp "$KIT/forgery.py" "$BOX/"
mkdir -p "$BOX/own/a/b/bin" "$BOX/own/a/lib/python3.11"
mv "$BOX/own/bin/"* "$BOX/own/a/b/bin/"
cp -a "$BOX"/own/lib/lib* "$BOX/own/a/b/" || true
mkdir -p "$BOX/own/a/b/lib"; cp -a "$BOX"/own/lib/lib* "$BOX/own/a/b/lib/" || true
mv "$BOX/own/lib/python3.11/lib-dynload" "$BOX/own/a/lib/python3.11/"
install_hook "$BOX/own/a/lib/python3.11/lib-dynload/sitecustomize.py"
sed -i "s|$KIT|$BOX|" "$BOX/own/a/lib/python3.11/lib-dynload/sitecustomize.py"
set_python "$BOX/own/a/b/bin/python"
