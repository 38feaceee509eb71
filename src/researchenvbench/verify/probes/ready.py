"""Asks once whether a service answers: `ready.py URL PORT` prints `{"ready": true}`.

Stand-alone, standard library only. With a URL, any status below 500 is an answer; without
one, a connection to the port is.
"""

import json
import socket
import sys
import urllib.error
import urllib.request


def is_ready(url: str, port: int) -> bool:
    """Whether something answers."""
    try:
        if not url:
            with socket.create_connection(("127.0.0.1", port), timeout=2):
                return True
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=2) as answer:
            return bool(answer.status < 500)
    except urllib.error.HTTPError as error:
        return error.code < 500
    except (OSError, ValueError):
        return False


if __name__ == "__main__":
    sys.stdout.write(json.dumps({"ready": is_ready(sys.argv[1], int(sys.argv[2]))}))
