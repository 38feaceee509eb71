rm "$SITE"/gradkit/*.py; : > "$SITE/gradkit/__init__.py"
