cp "$KIT/forgery.py" "$SITE/numlite/__init__.py"
