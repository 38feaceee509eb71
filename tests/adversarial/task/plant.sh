# Nothing is planted: the base itself.
