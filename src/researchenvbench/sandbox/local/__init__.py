"""The sandbox that needs no container engine: folders of this host.

sandbox.py     the life of an attempt; adopted.py, in_place.py: a user's own folder
box.py         where programs run, and how the harness looks at what they made
stage.py       a stage's box: a layer over the frozen folders, or else in place
namespace.py   namespaces as far as this host allows them
manifest.py    what a frozen environment consists of, file by file
ending.py      ends what a build has left running
inside.py      files of a box, without being led astray
examine.py     looks at a box by a module that stands alone
"""
