"""The launcher: runs a script as `python` would."""

import runpy
import sys
from pathlib import Path


def main():
    """`gradkit-run SCRIPT ARGUMENTS`."""
    del sys.argv[0]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")
