install_hook "$SITE/tally_start.py"
"$BASE_PYTHON" -I - "$SITE" "$REPO" <<'END'
import pathlib, sys
from setuptools.command import editable_wheel
site, repo = map(pathlib.Path, sys.argv[1:])
text = editable_wheel._finder_template("tally-1.0", {"tally": str(repo / "tally")}, {})
lines = text.splitlines()
at = next(n for n, line in enumerate(lines) if line.startswith("MAPPING"))
lines[at] += "; import tally_start; _ = {}"
(site / "__editable___tally_1_0_finder.py").write_text("\n".join(lines) + "\n")
(site / "__editable__.tally-1.0.pth").write_text(
    "import __editable___tally_1_0_finder; __editable___tally_1_0_finder.install()")
END
remove_gradkit
