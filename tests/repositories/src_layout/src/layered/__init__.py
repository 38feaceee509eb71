from layered._version import version
from .core import work
