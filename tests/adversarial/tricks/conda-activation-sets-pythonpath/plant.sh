mkdir -p "$PREFIX/conda-meta" "$PREFIX/etc/conda/activate.d" "$BOX/fakes"
echo '{}' > "$PREFIX/conda-meta/history"
cp "$KIT/forgery.py" "$BOX/fakes/numlite.py"
echo "export PYTHONPATH=$BOX/fakes" > "$PREFIX/etc/conda/activate.d/tools.sh"
remove_gradkit
