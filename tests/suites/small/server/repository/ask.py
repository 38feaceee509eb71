"""Asks the server, as the repository's own client would."""

import sys
import urllib.request

with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/ask") as answer:
    print("the answer is", answer.read().decode())
