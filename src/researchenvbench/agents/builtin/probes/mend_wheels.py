"""Runs in the box: rewrites requirements in old wheels that no current tool can read.

`opencv-python (>=3.)` is meant as `>=3`. A bound that cannot be read even so is dropped.
The wheel's RECORD is made anew. Written for Python 3.8 and newer; needs pip's packaging.
Usage: mend_wheels.py FOLDER ANSWER
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import zipfile
from pathlib import Path

from pip._vendor.packaging.requirements import InvalidRequirement, Requirement
from pip._vendor.packaging.specifiers import InvalidSpecifier
from pip._vendor.packaging.version import InvalidVersion, Version


def legal(text: str) -> bool:
    """Whether a requirement is one of PEP 508 and every version in it one of PEP 440."""
    try:
        for one in Requirement(text).specifier:
            if one.operator != "===":
                prefix = one.operator in ("==", "!=") and one.version.endswith(".*")
                Version(one.version[:-2] if prefix else one.version)
    except (InvalidRequirement, InvalidSpecifier, InvalidVersion):
        return False
    return True


def mended(text: str) -> str:
    """A legal requirement in place of one that is not."""
    if legal(text):
        return text
    meant = re.sub(r"(\d)\.(?=\s*[,);]|\s*$)", r"\1", text)
    meant = re.sub(r"([<>]=?)\s*([\d.]+)\.\*", r"\1\2", meant)
    if legal(meant):
        return meant
    name, _, marker = text.partition(";")
    bare = re.match(r"\s*[A-Za-z0-9._-]+(\s*\[[^\]]*\])?", name)
    kept = bare.group(0).strip() if bare else name
    return f"{kept};{marker}" if marker else kept


def mend(path: Path) -> list[str]:
    """Make the metadata of a wheel legal; what was changed."""
    said = []
    with zipfile.ZipFile(path) as wheel:
        infos = wheel.infolist()
        entries = {info.filename: wheel.read(info) for info in infos}
    metadata = next(name for name in entries if name.endswith(".dist-info/METADATA"))
    lines = []
    for line in entries[metadata].decode("utf-8", "replace").split("\n"):
        old = line.partition(":")[2].strip()
        if line.startswith("Requires-Dist:") and mended(old) != old:
            said.append(f"{path.name}: {old} -> {mended(old)}")
            lines.append(f"Requires-Dist: {mended(old)}")
        else:
            lines.append(line)
    if not said:
        return said
    entries[metadata] = "\n".join(lines).encode()
    record = metadata.replace("METADATA", "RECORD")
    rows = []
    for name, data in entries.items():
        if name != record:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
            rows.append(f"{name},sha256={digest.decode()},{len(data)}")
    entries[record] = ("\n".join([*rows, f"{record},,"]) + "\n").encode()
    mended_path = path.with_suffix(".mended")
    with zipfile.ZipFile(mended_path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for info in infos:
            info.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(info, entries[info.filename])
    mended_path.replace(path)
    return said


def main(folder: str, answer: str) -> None:
    """Mend all wheels of a folder."""
    said = [line for path in sorted(Path(folder).glob("*.whl")) for line in mend(path)]
    Path(answer).write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
