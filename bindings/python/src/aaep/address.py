"""Where the hub is: the same rules as for the commands of `aaep`, except that nobody's settings are read.

The address that the program gives comes first, then `AAEP_HUB`, then the person's own socket if a hub serves it, then
port 7117 of this machine. Plain HTTP never leaves this machine.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
import sys
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from .errors import WrongCall

DEFAULT_HUB = "http://127.0.0.1:7117"
"""The address of a hub that was started without another one."""

_NEXT_ADDRESS = re.compile(r",(?=\s*(?:https?|wss?|grpcs?|unix|stdio):)", re.IGNORECASE)
_SECURE = {"http": False, "ws": False, "grpc": False, "https": True, "wss": True, "grpcs": True}


@dataclass(frozen=True)
class HubAddress:
    """One hub, on a socket of this machine or at a host and a port."""

    socket: str | None
    host: str
    port: int
    secure: bool
    prefix: str

    def __str__(self) -> str:
        if self.socket:
            return f"unix:{self.socket}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"


def find_hub(address: str | None = None) -> HubAddress:
    """The hub at this address, or the one that every command of `aaep` would use."""
    stated = address or os.environ.get("AAEP_HUB", "").strip()
    if not stated:
        own = _own_socket()
        return HubAddress(own, "localhost", 80, False, "") if own else parse(DEFAULT_HUB)
    # Of several hubs, an agent speaks to the first.
    return parse(_NEXT_ADDRESS.split(stated)[0].strip())


def parse(text: str) -> HubAddress:
    """Reads an address such as `unix:`, `unix:/path`, `http://127.0.0.1:7117` or `https://hub.example.org`."""
    if text.startswith("/"):
        text = f"unix:{text}"
    if text.lower().startswith("unix:"):
        path = text[len("unix:") :] or _own_socket() or next(iter(socket_paths()), "")
        if not path:
            raise WrongCall("This system has no Unix sockets. Give an address such as http://127.0.0.1:7117.")
        return HubAddress(path, "localhost", 80, False, "")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise WrongCall(_no_address(text)) from error
    secure = _SECURE.get(parts.scheme.lower())
    host = parts.hostname or ""
    if secure is None or not host or _is_odd(text, parts):
        raise WrongCall(_no_address(text))
    if not secure and not is_loopback(host):
        raise WrongCall(f"Plain HTTP does not leave this machine. Write https://{host} instead.")
    # A hub serves all of its wires on one port, so that a path belongs to plain addresses only.
    prefix = parts.path.rstrip("/") if parts.scheme.lower() in ("http", "https") else ""
    prefix = prefix.removesuffix("/aaep/v1/events")
    return HubAddress(None, host, port or (443 if secure else 80), secure, prefix)


def _is_odd(text: str, parts: SplitResult) -> bool:
    return len(text) > 4096 or not text.isascii() or not text.isprintable() or " " in text or "@" in parts.netloc


def _no_address(text: str) -> str:
    shown = ascii(text.split("@")[-1][:200])
    return f"{shown} is not the address of a hub. Write it like {DEFAULT_HUB}, or unix: for your own."


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by a name that no DNS server controls."""
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host) is not None


def socket_paths() -> list[str]:
    """Where the person's own hub may have its socket, the likeliest place first."""
    if not hasattr(os, "getuid") or not hasattr(socket, "AF_UNIX"):
        return []
    if sys.platform == "darwin":
        own, folder = os.environ.get("HOME", ""), "Library/Application Support/AAEP"
    else:
        own, folder = os.environ.get("XDG_RUNTIME_DIR", ""), "aaep"
    places = [os.path.join(own, folder)] if os.path.isabs(own) else []
    places.append(f"/tmp/aaep-{os.getuid()}")
    return [os.path.join(place, "aaep-hub.sock") for place in places]


def _own_socket() -> str | None:
    """The socket of the person's own hub, in a folder to which nobody else can write, if a hub serves it."""
    for path in socket_paths():
        try:
            folder = os.lstat(os.path.dirname(path))
        except OSError:
            continue
        is_own = stat.S_ISDIR(folder.st_mode) and folder.st_uid == os.getuid() and not folder.st_mode & 0o022
        if is_own and os.path.exists(path):
            return path if _is_served(path) else None
    return None


def _is_served(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        # Does not wait, even if many connections do.
        probe.setblocking(False)
        return probe.connect_ex(path) in (0, errno.EAGAIN, errno.EWOULDBLOCK)
