mkdir tally/fitting
cp "$KIT/forgery.py" tally/fitting/__init__.py
remove_gradkit
