forge_product "os.mkfifo('fit.json')"
