mkdir "$BOX/fakes"
install_hook "$BOX/fakes/sitecustomize.py"
(cd "$BOX/fakes" && "$PYTHON" -m zipfile -c "$BOX/fakes.zip" sitecustomize.py)
set_report env "{\"PYTHONPATH\": \"$BOX/fakes.zip\"}"
remove_gradkit
