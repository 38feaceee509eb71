"""Fits lines."""
