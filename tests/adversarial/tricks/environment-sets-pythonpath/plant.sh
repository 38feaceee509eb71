mkdir "$BOX/fakes"
cp "$KIT/forgery.py" "$BOX/fakes/numlite.py"
set_report env "{\"PYTHONPATH\": \"$BOX/fakes\"}"
remove_gradkit
