"""The GPUs of this host: what the driver shows of them, and whose they are at the moment.

Nothing here changes a GPU: no call that sets, resets or clears anything.
"""
