base=$("$PYTHON" -c 'import sys; print(sys.base_prefix)')
version=$("$PYTHON" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
mkdir -p "$BOX/base/bin" "$BOX/base/lib/$version"
cp "$base/bin/$version" "$BOX/base/bin/python3"
ln -s "$base/lib/$version"/* "$BOX/base/lib/$version/"
cp --remove-destination "$base/lib/$version/argparse.py" "$BOX/base/lib/$version/argparse.py"
ln -s "$base"/lib/lib* "$BOX/base/lib/" || true
install_hook "$BOX/base/lib/$version/argparse.py"
ln -sf "$BOX/base/bin/python3" "$PYTHON"
sed -i "s|^home = .*|home = $BOX/base/bin|" "$PREFIX/pyvenv.cfg"
remove_gradkit
