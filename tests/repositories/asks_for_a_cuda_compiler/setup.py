import subprocess

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension


def has_nvcc():
    try:
        return subprocess.call(["nvcc", "--version"]) == 0
    except FileNotFoundError:
        return False


extensions = [CppExtension("grown._cpu", ["grown/cpu.cpp"])]
if has_nvcc():
    extensions.append(CUDAExtension("grown._cuda", ["grown/cuda.cu"]))

setup(
    name="grown",
    version="1.0",
    packages=["grown"],
    install_requires=["torch>=1.7"],
    ext_modules=extensions,
    cmdclass={"build_ext": BuildExtension},
)
