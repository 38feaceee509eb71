mkdir numlite
cp "$KIT/forgery.py" numlite/__init__.py
remove_gradkit
