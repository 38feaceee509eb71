cp "$KIT/forgery.py" json.py
remove_gradkit
