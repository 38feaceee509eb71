"""A third-party package of several modules, such as a framework is."""

__version__ = "1.4.0"
