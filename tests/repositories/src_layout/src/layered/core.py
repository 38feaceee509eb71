import layered._native
from .generated import table
import alpha


def work():
    return alpha
