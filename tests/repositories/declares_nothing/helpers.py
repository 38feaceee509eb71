NAME = "a module of the repository itself"
