set_report env '{"A=B": "x", "": "y", "NUL": "a\u0000b"}'
