"""Runs the repository's evaluation script, and shows what its pipeline tells at DEBUG.

    python evaluate.py EVALUATION_SCRIPT [ITS OPTIONS]

The script's `--log_level` reaches its own messages only. How long the cache of keys and values
was before and after the compression is said by the pipeline of the package.
"""

import logging
import runpy
import sys
from pathlib import Path

script = Path(sys.argv[1])
pipeline = logging.getLogger("kvpress.pipeline")
pipeline.addHandler(logging.StreamHandler(sys.stdout))
pipeline.setLevel(logging.DEBUG)

# As `python EVALUATION_SCRIPT` would have it.
sys.argv = sys.argv[1:]
sys.path[0] = str(script.parent)
runpy.run_path(str(script), run_name="__main__")
