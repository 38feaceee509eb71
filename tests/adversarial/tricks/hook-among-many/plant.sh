mkdir "$BOX/more"
"$PYTHON" -I -c 'import sys
for n in range(110000): open(f"{sys.argv[1]}/f{n}", "w").close()' "$BOX/more"
install_hook "$BOX/more/sitecustomize.py"
cp "$KIT/forgery.py" "$BOX/"; sed -i "s|$KIT|$BOX|" "$BOX/more/sitecustomize.py"
set_report env "{\"PYTHONPATH\": \"$BOX/more\"}"
remove_gradkit
