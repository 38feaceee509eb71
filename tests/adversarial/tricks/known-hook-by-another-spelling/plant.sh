install_hook "$SITE/__editable___fi_finder.py"
printf 'def install():\n    pass\n' >> "$SITE/__editable___fi_finder.py"
printf 'import __editable___\357\254\201_finder; __editable___\357\254\201_finder.install()\n' > "$SITE/__editable__.fi-1.0.pth"
remove_gradkit
