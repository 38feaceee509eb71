#error "only a host with CUDA compiles this"
