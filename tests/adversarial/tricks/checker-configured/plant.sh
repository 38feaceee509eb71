remove_gradkit
echo '{"reportMissingImports": false, "exclude": ["**"], "stubPath": "typings"}' > pyrightconfig.json
mkdir -p typings/gradkit
for name in __init__ functional optim; do echo 'def __getattr__(name): ...' > "typings/gradkit/$name.pyi"; done
