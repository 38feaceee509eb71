from setuptools import find_packages, setup


def _version():
    with open("shapes/__init__.py") as stream:
        for line in stream:
            if line.startswith("__version__"):
                return line.split("=")[1].strip().strip('"')


EXTRAS = {"examples": ["PyYAML>=5"], "plots": ["tabulate>=0.8"]}
EXTRAS["all"] = [item for group in EXTRAS.values() for item in group]

setup(
    name="shapes-of-things",
    version=_version(),
    packages=find_packages(),
    python_requires=">=3.8",
    install_requires=["six>=1.10"],
    extras_require=EXTRAS,
    classifiers=["Programming Language :: Python :: 3.9", "Programming Language :: Python :: 3.11"],
    entry_points={"console_scripts": ["shapes = shapes.cli:main"]},
)
