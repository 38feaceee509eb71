"$UV" pip install -q --offline --no-index --python "$PYTHON" setuptools > /dev/null 2>&1 || {
from=$("$BASE_PYTHON" -I -c 'import setuptools, os; print(os.path.dirname(os.path.dirname(setuptools.__file__)))')
cp -r "$from/_distutils_hack" "$from/distutils-precedence.pth" "$from"/setuptools-*.dist-info "$from/setuptools" "$from/pkg_resources" "$SITE/"
}
mkdir "$BOX/more"
install_hook "$BOX/more/_distutils_hack.py"
echo 'def add_shim(): pass' >> "$BOX/more/_distutils_hack.py"
cp "$KIT/forgery.py" "$BOX/"; sed -i "s|$KIT|$BOX|" "$BOX/more/_distutils_hack.py"
set_report env "{\"PYTHONPATH\": \"$BOX/more\"}"
remove_gradkit
