forge_byte_code "$SITE/numlite/__init__.py"
remove_gradkit
