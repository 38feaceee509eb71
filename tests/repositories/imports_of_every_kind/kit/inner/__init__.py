from .. import __init__ as above
