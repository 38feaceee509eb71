remove_gradkit
mkdir "$SITE/gradkit-stubs"
for name in __init__ functional optim run; do echo 'def __getattr__(name): ...' > "$SITE/gradkit-stubs/$name.pyi"; done
printf 'partial\n' > "$SITE/gradkit-stubs/py.typed"
