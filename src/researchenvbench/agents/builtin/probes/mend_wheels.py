"""Runs in the box: rewrites requirements in old wheels that no current tool can read.

`opencv-python (>=3.)` is meant as `>=3`. A bound that cannot be read even so is dropped.
The wheel's RECORD is made anew. Written for Python 3.8 and newer; needs pip's packaging.
Usage: mend_wheels.py FOLDER ANSWER
"""

import base64
import glob
import hashlib
import json
import os
import re
import sys
import zipfile

from pip._vendor.packaging.requirements import InvalidRequirement, Requirement
from pip._vendor.packaging.specifiers import InvalidSpecifier, SpecifierSet
from pip._vendor.packaging.version import InvalidVersion, Version


def legal(text):
    """Whether every version in a requirement is one of PEP 440."""
    try:
        requirement = Requirement(text)
        for one in SpecifierSet(str(requirement.specifier)):
            if one.operator != "===":
                Version(one.version[:-2] if one.version.endswith(".*") else one.version)
    except (InvalidRequirement, InvalidSpecifier, InvalidVersion):
        return False
    return True


def mended(text):
    """A legal requirement in place of one that is not."""
    if legal(text):
        return text
    dotted = re.sub(r"(\d)\.(?=\s*[,);]|\s*$)", r"\1", text)
    dotted = re.sub(r"([<>])\s*([\d.]+)\.\*", r"\1\2", re.sub(r"([<>]=)\s*([\d.]+)\.\*", r"\1\2", dotted))
    if legal(dotted):
        return dotted
    name, _, marker = text.partition(";")
    bare = re.match(r"\s*[A-Za-z0-9._-]+(\s*\[[^\]]*\])?", name)
    return bare.group(0).strip() + (";" + marker if marker else "")


def mend(path, said):
    with zipfile.ZipFile(path) as wheel:
        entries = {info.filename: wheel.read(info) for info in wheel.infolist()}
        modes = {info.filename: info.external_attr for info in wheel.infolist()}
    metadata = next(name for name in entries if name.endswith(".dist-info/METADATA"))
    lines = []
    for line in entries[metadata].decode("utf-8", "replace").split("\n"):
        if line.startswith("Requires-Dist:"):
            old = line.partition(":")[2].strip()
            new = mended(old)
            if new != old:
                said.append("%s: %s -> %s" % (os.path.basename(path), old, new))
                line = "Requires-Dist: " + new
        lines.append(line)
    entries[metadata] = "\n".join(lines).encode()
    record = metadata.replace("METADATA", "RECORD")
    rows = []
    for name, data in entries.items():
        if name != record:
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
            rows.append("%s,sha256=%s,%d" % (name, digest.decode(), len(data)))
    entries[record] = ("\n".join([*rows, record + ",,"]) + "\n").encode()
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in entries.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = modes[name]
            info.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(info, data)
    os.replace(path + ".new", path)


def main(folder, answer):
    said = []
    for path in sorted(glob.glob(os.path.join(folder, "*.whl"))):
        mend(path, said)
    with open(answer, "w", encoding="utf-8") as stream:
        json.dump(said, stream)


main(sys.argv[1], sys.argv[2])
