"""Which readers are installed is known without importing one, and is true of the readers."""

import re
from pathlib import Path

from researchenvbench.verify import readers
from researchenvbench.verify.readers import installed

NEEDED = re.compile(r'need\("(\w+)[^"]*"\)')


def test_the_libraries_are_those_that_the_readers_import():
    folder = Path(readers.__file__).parent
    needed, named = {}, {}
    for format_, (module, _) in readers._READERS.items():
        needed[module] = set(NEEDED.findall((folder / f"{module}.py").read_text()))
        named.setdefault(module, set()).update(installed.LIBRARIES.get(format_, ()))
    assert named == needed
    assert {"h5py", "PIL", "av", "numpy", "safetensors"} == set().union(*needed.values())


def test_what_is_lacking_is_named_as_it_is_installed(monkeypatch):
    assert installed.lacking(["any", "json", "csv"]) == {}
    monkeypatch.setattr(installed, "_there", lambda module: module == "numpy")
    assert installed.lacking(["npz", "png", "safetensors"]) == {
        "png": ["pillow"],
        "safetensors": ["safetensors"],
    }
    assert set(installed.lacking()) == {"safetensors", "hdf5", "png", "jpeg", "video"}
