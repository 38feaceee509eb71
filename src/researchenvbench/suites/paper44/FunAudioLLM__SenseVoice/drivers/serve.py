"""Lays the model where the server looks for it, and becomes the server.

    python serve.py MODEL PROGRAM [ARGUMENTS]

`api.py` asks for the id `iic/SenseVoiceSmall`, and funasr takes a folder of that name below the
working one in place of the hub's.
"""

import os
import sys
from pathlib import Path

model, *command = sys.argv[1:]
place = Path("iic", "SenseVoiceSmall")
place.parent.mkdir()
place.symlink_to(model)
os.execv(command[0], command)  # noqa: S606  # a program of the environment, by its path
