install_hook "$SITE/tally_start.py"
echo 'import _virtualenv' > "$SITE/_virtualenv.pth"
printf 'import importlib\n\nimportlib.import_module("tally_start")\n' > "$SITE/_virtualenv.py"
remove_gradkit
