"""What the proxy of `--network registries` costs for each byte.

    python benchmarks/registries.py [MB]

A server in a process of its own sends so many bytes (default: 900 MB, as a wheel of torch has) to
this one over the loopback: directly, by the proxy as http, and by a tunnel as https goes. The
limit is that a tunnel passes 100 MB/s, more than the lines that such wheels come by.
"""

from __future__ import annotations

import multiprocessing
import socket
import sys
import time

from researchenvbench.relay.registries.hosts import hosts_of
from researchenvbench.relay.registries.proxy import Proxy
from researchenvbench.relay.registries.upstream import Upstream
from researchenvbench.sandbox.listening import listen_on_host

LIMIT_MB_S = 100
PIECE = bytes(1 << 20)


def serve(listening: socket.socket, size_bytes: int) -> None:
    """Answer each connection with a head and the bytes."""
    while True:
        connection, _ = listening.accept()
        with connection:
            if connection.recv(65536):
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                for _ in range(size_bytes // len(PIECE)):
                    connection.sendall(PIECE)


def receive(address: tuple[str, int], asked: list[bytes]) -> tuple[int, float]:
    """Ask, the next when the one before is answered, and take all; bytes and seconds."""
    buffer = bytearray(1 << 20)
    began, received = time.monotonic(), 0
    with socket.create_connection(address) as client:
        for one in asked[:-1]:
            client.sendall(one)
            client.recv(65536)
        client.sendall(asked[-1])
        while size := client.recv_into(buffer):
            received += size
    return received, time.monotonic() - began


def main() -> int:
    """Measure and print."""
    size_bytes = int(sys.argv[1] if len(sys.argv) > 1 else 900) * len(PIECE)
    with listen_on_host(0) as origin, listen_on_host(0) as listening:
        where = "{}:{}".format(*origin.getsockname())
        server = multiprocessing.get_context("fork").Process(
            target=serve, args=(origin, size_bytes), daemon=True
        )
        server.start()
        upstream = Upstream({})
        ways = {
            "direct": (origin, [b"GET / HTTP/1.1\r\n\r\n"]),
            "http": (listening, [f"GET http://{where}/ HTTP/1.1\r\n\r\n".encode()]),
            "tunnel": (listening, [f"CONNECT {where} HTTP/1.1\r\n\r\n".encode(), b"GET"]),
        }
        rates = {}
        with Proxy(listening, hosts_of({}, allowed=[where]), upstream, lambda _: None):
            for name, (place, asked) in ways.items():
                cpu = time.process_time()
                received, seconds = receive(place.getsockname(), asked)
                cpu = time.process_time() - cpu
                rates[name] = received / 1e6 / seconds
                taken = f"{received / 1e6:6.0f} MB in {seconds:5.2f} s  {rates[name]:6.0f} MB/s"
                print(f"{name:8} {taken}  CPU {cpu:5.2f} s, the client's included")
        upstream.close()
        server.kill()
        server.join()
    return 0 if rates["tunnel"] >= LIMIT_MB_S else 1


if __name__ == "__main__":
    sys.exit(main())
