copy_python "$BOX/python"
cp -a "$SITE"/numlite* "$SITE"/gradkit* "$BOX"/python/lib/python3*/site-packages/
mkdir -p "$BOX/python/conda-meta" "$BOX/python/etc/conda/activate.d" "$BOX/python/share/proj"
echo '==> 2025-01-01 <==' > "$BOX/python/conda-meta/history"
echo '{"name": "python", "version": "3.11.7", "files": []}' > "$BOX/python/conda-meta/python-3.11.7-h1.json"
printf 'export PROJ_DATA="%s"\n' "$BOX/python/share/proj" > "$BOX/python/etc/conda/activate.d/proj.sh"
set_python "$BOX/python/bin/python3"
