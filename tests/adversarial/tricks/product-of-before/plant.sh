forge_product "__import__('shutil').copy2('$BOX/fit.json', 'fit.json')"
