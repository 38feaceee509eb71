"""podman and docker as programs of this host, for all that uses them.

engine.py   one of them: its command line, and what it says when it fails
dialect.py  what they differ in
finding.py  which flags containers need on this host; which engine is the one to use
known.py    what an engine knows of an image
mounts.py   how a container is shown files of this host
reaching.py how programs in a container reach the harness
storage.py  where it keeps images, and whether there is room
bundle.py   the harness's programs as a folder that runs in any container
"""

#: In the order of preference: podman needs no daemon and no right of root's.
ENGINES = ("podman", "docker")
