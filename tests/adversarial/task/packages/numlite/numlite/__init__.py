"""A third-party package: numbers, lightly."""

__version__ = "2.1.0"


def mean(values):
    """The arithmetic mean."""
    return sum(values) / len(values)
