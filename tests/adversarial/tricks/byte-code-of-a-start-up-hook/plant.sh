printf '"""Nothing."""\n' > "$SITE/sitecustomize.py"
cp "$KIT/forgery.py" "$BOX/run.py"
sed "s|@KIT@/forgery.py|$BOX/run.py|" "$KIT/hook.py" > "$KIT/new.py"
mv "$KIT/new.py" "$KIT/forgery.py"
forge_byte_code "$SITE/sitecustomize.py" timestamp
remove_gradkit
