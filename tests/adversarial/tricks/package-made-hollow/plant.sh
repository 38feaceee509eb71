: > "$SITE/gradkit/functional.py"; : > "$SITE/gradkit/optim.py"; : > "$SITE/gradkit/__init__.py"
