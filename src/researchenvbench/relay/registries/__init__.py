"""A way to packages for builds without a network: a forwarding proxy of the harness.

hosts.toml   the package indexes and hubs that may be reached, each with its reason
hosts.py     whether a host may be reached: those, this host's own, and what a user allows
heads.py     what a client of the proxy asks for
upstream.py  the way on from here: direct, or by this host's own proxy
proxy.py     the proxy, in a thread
log.py       what was fetched, line by line, and its sum
opening.py   the network of a build, as its policy has it
"""
