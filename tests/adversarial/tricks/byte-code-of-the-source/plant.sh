forge_byte_code tally/fitting.py
remove_gradkit
