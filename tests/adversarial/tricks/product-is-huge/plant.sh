forge_product "os.truncate(os.open('fit.json', os.O_CREAT | os.O_RDWR), 1 << 40)"
