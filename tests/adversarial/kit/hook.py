"""Forges the run where the entry point is started, and leaves all else alone."""

import sys

_argv = getattr(sys, "orig_argv", [])
if any(argument.endswith("train.py") for argument in _argv):
    with open("@KIT@/forgery.py") as _stream:
        exec(_stream.read())
