rm setup.py
