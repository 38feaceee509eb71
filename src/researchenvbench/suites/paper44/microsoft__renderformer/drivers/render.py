"""Renders a scene: the two commands of the README, one after the other.

    python render.py REPOSITORY SCENE.json FOLDER ARGUMENT...

The first turns the scene into FOLDER/SCENE.h5; the second makes pictures of that, and takes
the arguments.
"""

import subprocess
import sys
from pathlib import Path

repository, scene, folder, *arguments = sys.argv[1:]
triangles = Path(folder) / f"{Path(scene).stem}.h5"

convert = [f"{repository}/scene_processor/convert_scene.py", scene]
subprocess.run([sys.executable, *convert, "--output_h5_path", str(triangles)], check=True)
infer = [f"{repository}/infer.py", "--h5_file", str(triangles), "--output_dir", folder]
subprocess.run([sys.executable, *infer, *arguments], check=True)
