# numpy is needed here but is not named in build-system.requires.
import numpy
from setuptools import Extension, setup

setup(
    packages=["compiled_sum"],
    ext_modules=[
        Extension("compiled_sum._sum", ["compiled_sum/_sum.c"], include_dirs=[numpy.get_include()])
    ],
)
