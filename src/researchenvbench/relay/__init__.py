"""Between agents and the providers of models: adds the key, passes bytes, counts, keeps.

relay.py      what the harness holds: serve, close, use
server.py     the HTTP server in its thread; exchange.py, one request; desk.py, what they share
provider.py   which paths and models; incoming.py, what may be passed on; headers.py
asking.py     asks the provider; patience.py, how long its faults are waited out
usage.py      tokens, read from answers as they pass; events.py and decoding.py, how
keys.py       where keys are; prices.py, what tokens cost
record.py     what is kept; redaction.py, what is taken out of it
registries/   the other way out of a box: a proxy that lets packages through, and no model
"""

from __future__ import annotations

from .keys import Key, KeySource
from .patience import Patience
from .prices import Prices
from .provider import Budget, Provider
from .record import move_lost, read_calls
from .relay import Relay

__all__ = [
    "Budget",
    "Key",
    "KeySource",
    "Patience",
    "Prices",
    "Provider",
    "Relay",
    "move_lost",
    "read_calls",
]
