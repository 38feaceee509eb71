"""Asks the running server for speech, as the README's client does, and keeps the answer.

    python speak.py ADDRESS FILE FORMAT TEXT

The README's own clients use a fixed port and ask for MP3.
"""

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

address, file, sound_format, text = sys.argv[1:]
asked = {
    "model": "kokoro",
    "input": text,
    "voice": "af_heart",
    "response_format": sound_format,
    "stream": False,
}
request = urllib.request.Request(  # noqa: S310  # an address of this host
    f"{address}/v1/audio/speech",
    data=json.dumps(asked).encode(),
    headers={"Content-Type": "application/json"},
)
# No proxy: the server is on this host.
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    with opener.open(request) as answer:
        sound, kind, status = answer.read(), answer.headers["Content-Type"], answer.status
except urllib.error.HTTPError as refusal:
    sys.exit(f"{refusal.code}: {refusal.read().decode(errors='replace')}")
Path(file).write_bytes(sound)
sys.stdout.write(f"{status} {kind}: {len(sound)} bytes\n")
