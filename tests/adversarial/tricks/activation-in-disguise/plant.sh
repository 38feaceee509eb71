mkdir -p "$PREFIX/conda-meta" "$PREFIX/etc/conda/activate.d" "$BOX/fakes"
echo '{}' > "$PREFIX/conda-meta/history"
install_hook "$BOX/fakes/sitecustomize.py"
echo "v=PYTHONPATH; export \"\$v\"=$BOX/fakes" > "$PREFIX/etc/conda/activate.d/tools.sh"
remove_gradkit
