forge_product "os.symlink('$BOX/fit.json', 'fit.json')"
