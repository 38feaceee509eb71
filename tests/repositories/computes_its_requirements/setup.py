import os

from setuptools import setup

here = os.path.dirname(os.path.abspath(__file__))


def requirements():
    with open(os.path.join(here, "requirements.txt")) as stream:
        return [line.strip() for line in stream if line.strip()]


setup(name="computed", version="1", py_modules=["computed"], install_requires=requirements())
