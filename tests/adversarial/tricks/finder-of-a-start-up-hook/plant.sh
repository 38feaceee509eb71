install_hook "$BOX/elsewhere.py"
cp "$KIT/forgery.py" "$BOX/"; sed -i "s|$KIT|$BOX|" "$BOX/elsewhere.py"
"$BASE_PYTHON" -I - "$SITE" "$BOX" <<'END'
import pathlib, sys
from setuptools.command import editable_wheel
site, box = map(pathlib.Path, sys.argv[1:])
text = editable_wheel._finder_template("tally-1.0", {"sitecustomize": str(box / "elsewhere")}, {})
(site / "__editable___tally_1_0_finder.py").write_text(text)
(site / "__editable__.tally-1.0.pth").write_text(
    "import __editable___tally_1_0_finder; __editable___tally_1_0_finder.install()")
END
remove_gradkit
