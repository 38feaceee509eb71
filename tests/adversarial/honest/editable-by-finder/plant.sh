"$BASE_PYTHON" -I - "$SITE" "$REPO" <<'EOF'
import pathlib, sys
from setuptools.command import editable_wheel
site, repo = map(pathlib.Path, sys.argv[1:])
name, finder = "tally-1.0", "__editable___tally_1_0_finder"
make = editable_wheel._finder_template
text = make(name, {"tally": str(repo / "tally")}, {})
(site / f"{finder}.py").write_text(text)
(site / f"__editable__.{name}.pth").write_text(f"import {finder}; {finder}.install()")
info = site / "tally-1.0.dist-info"
info.mkdir()
(info / "METADATA").write_text("Metadata-Version: 2.1\nName: tally\nVersion: 1.0\n")
(info / "INSTALLER").write_text("pip\n")
(info / "direct_url.json").write_text('{"dir_info": {"editable": true}, "url": "file://%s"}' % repo)
import base64, hashlib
def line(path):
    content = path.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{path.relative_to(site)},sha256={digest},{len(content)}"
files = [site / f"{finder}.py", site / f"__editable__.{name}.pth", *sorted(info.iterdir())]
(info / "RECORD").write_text("\n".join([*map(line, files), "tally-1.0.dist-info/RECORD,,", ""]))
EOF
