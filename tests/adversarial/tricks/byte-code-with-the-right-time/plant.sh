forge_byte_code tally/fitting.py timestamp
remove_gradkit
