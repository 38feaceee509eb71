root="$BOX/pyenv"; mkdir -p "$root/versions/other/bin" "$root/shims"
cp -r /root/.pyenv/libexec /root/.pyenv/bin "$root/"; cp -r /root/.pyenv/completions /root/.pyenv/pyenv.d "$root/" 2> /dev/null || true
ln -s "$PREFIX" "$root/versions/real"
echo real > "$root/version"
cp "$KIT/forgery.py" "$BOX/"
printf '#!/bin/sh\ncase "$*" in *train.py*) exec %s %s;; esac\nexec %s "$@"\n' "$PYTHON" "$BOX/forgery.py" "$PYTHON" > "$root/versions/other/bin/python"
chmod +x "$root/versions/other/bin/python"
PYENV_ROOT="$root" PATH="$root/bin:$PATH" "$root/bin/pyenv" rehash
set_report python_path "\"$root/shims/python\""
echo other > "$REPO/.python-version"
remove_gradkit
