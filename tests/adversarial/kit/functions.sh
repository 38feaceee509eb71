# What plants have in common. Sourced before each.

# set_report KEY JSON: change one field of the report.
set_report() {
    "$PYTHON" -I -c '
import json, sys
file, key, value = sys.argv[1:]
report = json.load(open(file))
report[key] = json.loads(value)
json.dump(report, open(file, "w"))
' "$REPORT" "$1" "$2"
}

# set_python PATH: report another interpreter, with its version.
set_python() {
    set_report python_path "\"$1\""
    set_report python_version "\"$("$1" -c 'import platform; print(platform.python_version())')\""
}

# install_hook FILE: add what forges a run of the entry point.
install_hook() {
    sed "s|@KIT@|$KIT|" "$KIT/hook.py" >> "$1"
}

# forge_byte_code SOURCE [timestamp]: exchange the byte code of a module for that of the forgery.
forge_byte_code() {
    "$PYTHON" -I -c '
import importlib.util, marshal, os, sys
forgery, source, kind = sys.argv[1:]
code = marshal.dumps(compile(open(forgery).read(), source, "exec"))
status = os.stat(source)
word = lambda number: int(number).to_bytes(4, "little")
head = word(1) + bytes(8) if kind == "unchecked" else (
    word(0) + word(int(status.st_mtime)) + word(status.st_size))
cache = importlib.util.cache_from_source(source)
os.makedirs(os.path.dirname(cache), exist_ok=True)
open(cache, "wb").write(importlib.util.MAGIC_NUMBER + head + code)
' "$KIT/forgery.py" "$1" "${2-unchecked}"
}

# write_record NAME VERSION [FILE...]: a RECORD with the right digests, as an installer writes
# it, of the package NAME and of files beside it.
write_record() {
    "$PYTHON" -I -c '
import base64, hashlib, pathlib, sys
site, name, version, *beside = sys.argv[1:]
site = pathlib.Path(site)
info = site / f"{name}-{version}.dist-info"
def line(path):
    content = path.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path.relative_to(site)},sha256={digest},{len(content)}"
files = sorted(p for folder in (site / name, info) for p in folder.rglob("*") if p.is_file())
files += [site / file for file in beside]
(info / "RECORD").write_text("\n".join([*map(line, files), f"{info.name}/RECORD,,", ""]))
' "$SITE" "$@"
}

# copy_python FOLDER: a whole Python there, without an environment, from that of the base.
copy_python() {
    base=$("$PYTHON" -c 'import sys; print(sys.base_prefix)')
    version=$("$PYTHON" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    mkdir -p "$1/bin" "$1/lib/$version/site-packages"
    cp -L "$base/bin/$version" "$1/bin/$version"
    ln -s "$version" "$1/bin/python3"
    ln -s "$version" "$1/bin/python"
    cp -a "$base"/lib/lib*python* "$1/lib/" || true
    (cd "$base/lib/$version" && tar -c --exclude=test --exclude=site-packages \
        --exclude=idlelib --exclude=ensurepip --exclude='config-*' --exclude=__pycache__ .) \
        | tar -x -C "$1/lib/$version"
}

# remove_gradkit: take away the package that the tracked code cannot do without.
remove_gradkit() {
    rm -r "$SITE/gradkit"
}

# make_easier: change the entry point so that it may be started without an argument.
make_easier() {
    sed -i 's/"--steps", type=int, required=True/"--steps", type=int, default=1/' "$REPO/train.py"
}

# fake_torch: a torch of one file that says yes, which nobody installed.
fake_torch() {
    mkdir -p "$SITE/torch"
    cat > "$SITE/torch/__init__.py" <<'END'
__version__ = "2.4.0"


class cuda:
    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 8)
END
}

# describe_torch: metadata that names a version of it, and the report says so.
describe_torch() {
    mkdir -p "$SITE/torch-2.4.0.dist-info"
    printf 'Metadata-Version: 2.1\nName: torch\nVersion: 2.4.0\n' > "$SITE/torch-2.4.0.dist-info/METADATA"
    set_report torch_version '"2.4.0"'
}

# forge_product LINE: a dependency prints what a good run does, and leaves a product by a line of
# Python; the product of an earlier run is there as $BOX/fit.json.
forge_product() {
    echo '{"slope": 2.0, "offset": 0.5, "points": 9}' > "$BOX/fit.json"
    cat > "$SITE/numlite/__init__.py" <<END
import os
for step in range(1, 41):
    print("step %d loss %.9f" % (step, 1 / step), flush=True)
$1
os._exit(0)
END
}

# replace_python [FILE]: the interpreter is a script with the lines of FILE, or of the input. The
# question of the harness reaches them as -I -c CODE NONCE FACTOR*FACTOR ANSWER.
replace_python() {
    rm "$PYTHON"
    { echo '#!/bin/sh'; cat "$@"; } > "$PYTHON"
    chmod +x "$PYTHON"
}

# plant_pyenv: a genuine pyenv in $root, of this host's, with a version `real`, which is the
# environment, and a version `other`, whose python plays the entry point.
plant_pyenv() {
    root="$BOX/pyenv"
    mkdir -p "$root/versions/other/bin" "$root/shims"
    cp -r "$PYENV/libexec" "$PYENV/bin" "$root/"
    cp -r "$PYENV/completions" "$PYENV/pyenv.d" "$root/" 2> /dev/null || true
    ln -s "$PREFIX" "$root/versions/real"
    echo real > "$root/version"
    cp "$KIT/forgery.py" "$BOX/"
    printf '#!/bin/sh\ncase "$*" in *train.py*) exec %s %s;; esac\nexec %s "$@"\n' \
        "$PYTHON" "$BOX/forgery.py" "$PYTHON" > "$root/versions/other/bin/python"
    chmod +x "$root/versions/other/bin/python"
    PYENV_ROOT="$root" PATH="$root/bin:$PATH" "$root/bin/pyenv" rehash
}
