"""Attempts: planned, run one by one or side by side, kept on disk, resumed."""
