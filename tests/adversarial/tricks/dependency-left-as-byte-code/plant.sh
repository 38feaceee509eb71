forge_byte_code "$SITE/numlite/__init__.py"
mv "$SITE"/numlite/__pycache__/__init__.*.pyc "$SITE/numlite/__init__.pyc"
rm "$SITE/numlite/__init__.py"
remove_gradkit
