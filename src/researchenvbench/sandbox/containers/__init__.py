"""Sandboxes that are containers: podman and docker, driven through `engines`.

given.py     what a container is given: labels, mounts, devices, variables; options.py: what of
             it a user may choose
sandbox.py   the life of an attempt: build, freeze, stages, end
build.py     the container that an agent works in: following.py has the scripts by which its
             commands outlive the harness, journal.py what was done and clock.py when,
             copies.py its files, disk.py what it takes of the disk, freezing.py how it
             becomes an image
stage.py     the container that a stage runs in
attended.py  files of a stage's container, by a process of ours in it
inventory.py what an engine keeps of ours; in_use.py: what is being judged
moving.py    environments as files; archives.py: what such a file says of itself
"""
