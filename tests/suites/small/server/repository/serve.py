"""A server with one answer; SERVER_DIES makes it end before it is ready."""

import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

if os.environ.get("SERVER_DIES"):
    sys.exit("no weights")


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"status": "ready", "answer": 42}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, text, *values):
        print("asked", self.path, flush=True)


HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
