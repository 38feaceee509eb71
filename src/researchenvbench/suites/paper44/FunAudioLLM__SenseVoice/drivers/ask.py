"""Sends sounds to the running server, as its form does, and keeps the answer.

python ask.py ADDRESS ANSWER SOUND…
"""

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

address, answer, *sounds = sys.argv[1:]
edge = "edge-of-a-part"
body = b""
for sound in map(Path, sounds):
    head = f'Content-Disposition: form-data; name="files"; filename="{sound.name}"'
    body += f"--{edge}\r\n{head}\r\nContent-Type: audio/wav\r\n\r\n".encode()
    body += sound.read_bytes() + b"\r\n"
head = 'Content-Disposition: form-data; name="lang"'
body += f"--{edge}\r\n{head}\r\n\r\nen\r\n--{edge}--\r\n".encode()
request = urllib.request.Request(  # noqa: S310  # an address of this host
    f"{address}/api/v1/asr",
    data=body,
    headers={"Content-Type": f"multipart/form-data; boundary={edge}"},
)
# No proxy: the server is on this host.
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    with opener.open(request) as reply:
        said = reply.read()
except urllib.error.HTTPError as refusal:
    sys.exit(f"{refusal.code}: {refusal.read().decode(errors='replace')}")
Path(answer).write_bytes(said)
texts = [row["raw_text"] for row in json.loads(said)["result"]]
for text in texts:
    print(f"heard {len(text.split())} words: {text}")
print(f"{len(set(texts))} of {len(sounds)} answers differ")
