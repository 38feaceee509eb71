"""Base images: what containers start from, without a framework.

base.py            which of them this host has, and what is known of each
containerfile.py   the paper's CUDA base, made by the engine from `Containerfile`
lock.py            the digest of a base that is named by its tag
debian.py          a plain base by debootstrap, where no image registry is reachable
mirror.py          the Debian mirror that this host uses
scratch.py         what making an image needs: to be alone, a folder that leaves no mount behind
"""
