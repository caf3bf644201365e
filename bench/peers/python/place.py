"""Shared by the two Python peers: their command line and the settings of uvicorn."""

import sys

UVICORN = {
    "loop": "uvloop",
    "http": "httptools",
    "ws": "none",
    "access_log": False,
    "log_level": "error",
}


def read(arguments: list[str]) -> tuple[str, int] | None:
    """Reads `stdio` or `http 127.0.0.1:PORT`. Returns the address, or None for stdio."""
    match arguments[1:]:
        case ["stdio"]:
            return None
        case ["http", address] if ":" in address:
            host, _, port = address.rpartition(":")
            return host, int(port)
    sys.exit("usage: PEER stdio | PEER http 127.0.0.1:PORT")
