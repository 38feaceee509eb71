import not_readable
NAME = "café"
