"""What the two Python peers share: how they are called, and how uvicorn serves them."""

import sys

UVICORN = {
    "loop": "uvloop",
    "http": "httptools",
    "ws": "none",
    "access_log": False,
    "log_level": "error",
}


def read(arguments: list[str]) -> tuple[str, int] | None:
    """`stdio`, or `http 127.0.0.1:PORT`: the address to listen on, or None for stdio."""
    match arguments[1:]:
        case ["stdio"]:
            return None
        case ["http", address] if ":" in address:
            host, _, port = address.rpartition(":")
            return host, int(port)
    sys.exit("usage: PEER stdio | PEER http 127.0.0.1:PORT")
