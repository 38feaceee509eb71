"""Builds the extension that makes sums fast, where there is a compiler."""

from setuptools import Extension, setup

setup(
    packages=["tally"],
    ext_modules=[Extension("tally._fast", ["tally/_fast.c"], optional=True)],
)
