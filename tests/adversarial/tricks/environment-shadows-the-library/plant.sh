mkdir "$BOX/fakes"
cp "$KIT/forgery.py" "$BOX/fakes/json.py"
set_report env "{\"PYTHONPATH\": \"$BOX/fakes\"}"
