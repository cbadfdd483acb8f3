"""One connection to a hub, kept open between requests. Only the standard library."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from typing import Any, BinaryIO, NamedTuple, cast

from .address import HubAddress
from .errors import HubAway, HubRefused, WrongCall

MAX_ANSWER_BYTES = 4 * 1024 * 1024
"""A larger answer is not one of a hub."""

_MOST_HEADERS = 100
_MOST_LINE = 16 * 1024

JsonObject = dict[str, Any]
"""A JSON object."""


class HubAnswer(NamedTuple):
    """What the hub answered to one request."""

    status: int
    body: bytes
    retry_after: float | None

    def json(self) -> JsonObject:
        """The body as a JSON object; an empty one if it is something else."""
        return json_object(self.body)

    def lines(self) -> list[JsonObject]:
        """The body as JSON objects, one a line."""
        return [json_object(line) for line in self.body.split(b"\n") if line.strip()]

    def refusal(self) -> HubRefused:
        """The error that this answer is."""
        return refusal_of(self.json(), self.status)


def json_object(text: bytes | str) -> JsonObject:
    """A text as a JSON object; an empty one if it is something else."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def refusal_of(body: JsonObject, status: int = 0) -> HubRefused:
    """The error that an error body of the hub is, with everything that is wrong."""
    message = str(body.get("message") or body.get("reason_message") or f"The hub answered with status {status}.")
    violations: object = body.get("violations")
    for violation in cast("list[object]", violations) if isinstance(violations, list) else []:
        if isinstance(violation, dict):
            named = cast(JsonObject, violation)
            message += f" {named.get('pointer', '')}: {named.get('message', '')}"
    # A hub is trusted with less than a terminal.
    safe = "".join(c if c.isprintable() else " " for c in message[:4096])
    return HubRefused(str(body.get("error") or body.get("reason_code") or "unknown"), safe, status)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def read_token(token: str | None) -> str | None:
    """The token that the program gives, or that of `AAEP_TOKEN`."""
    stated = token if token is not None else os.environ.get("AAEP_TOKEN", "").split(",")[0].strip()
    if stated and not (stated.isascii() and stated.isprintable() and " " not in stated):
        raise WrongCall("The token has characters that no token has. Copy it again as `aaep tokens new` printed it.")
    return stated or None


class HubConnection:
    """A connection that is opened when it is needed. For one thread at a time."""

    def __init__(self, address: HubAddress, token: str | None) -> None:
        self.address = address
        self._token = token
        self._open: http.client.HTTPConnection | None = None
        self._reader: BinaryIO | None = None

    def new_connection(self, timeout: float) -> http.client.HTTPConnection:
        """Another connection to the same hub, not yet opened."""
        address = self.address
        if address.socket:
            return _UnixConnection(address.socket, timeout)
        if address.secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(address.host, address.port, timeout=timeout, context=context)
        return http.client.HTTPConnection(address.host, address.port, timeout=timeout)

    def headers(self) -> dict[str, str]:
        """What every request says."""
        named = {"accept": "application/json"}
        return {**named, "authorization": f"Bearer {self._token}"} if self._token else named

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float = 30,
    ) -> HubAnswer:
        """Sends a request and reads the whole answer. Raises `HubAway` if there is none.

        A request on a connection that the hub closed meanwhile is sent again, once. That is safe because every
        request of the kit can be repeated: events and asks have ids of their own.
        """
        headers = self.headers() if body is None else {**self.headers(), "content-type": content_type}
        was_open = self._open is not None
        try:
            return self._call(method, self.address.prefix + path, body, headers, timeout)
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.close()
            if not was_open or isinstance(error, TimeoutError):
                raise HubAway(f"The hub at {self.address} cannot be reached: {_reason(error)}") from error
        try:
            return self._call(method, self.address.prefix + path, body, headers, timeout)
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.close()
            raise HubAway(f"The hub at {self.address} cannot be reached: {_reason(error)}") from error

    def _call(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], timeout: float
    ) -> HubAnswer:
        # Written and read here: for the small requests of an agent, http.client takes more than twice as much CPU.
        if self._open is None:
            self._open = self.new_connection(timeout)
            self._open.connect()
            self._reader = self._open.sock.makefile("rb")
        stream = self._open.sock
        assert stream is not None and self._reader is not None
        stream.settimeout(timeout)
        host = "localhost" if self.address.socket else str(self.address).split("//", 1)[-1]
        lines = [f"{method} {path} HTTP/1.1", f"host: {host}", *(f"{name}: {it}" for name, it in headers.items())]
        head = "\r\n".join([*lines, f"content-length: {len(body or b'')}", "", ""])
        stream.sendall(head.encode("ascii") + (body or b""))
        return self._read(self._reader)

    def _read(self, reader: BinaryIO) -> HubAnswer:
        version, _, rest = _line(reader).partition(" ")
        status = int(rest[:3]) if rest[:3].isascii() and rest[:3].isdigit() else 0
        if version not in ("HTTP/1.1", "HTTP/1.0") or not 200 <= status <= 599:
            raise http.client.BadStatusLine("it does not speak HTTP")
        found: dict[str, str] = {}
        for _ in range(_MOST_HEADERS):
            line = _line(reader)
            if not line:
                break
            name, _, value = line.partition(":")
            if found.setdefault(name.lower(), value.strip()) != value.strip() and name.lower() == "content-length":
                raise http.client.HTTPException("it gives two lengths")
        else:
            raise http.client.HTTPException("it has too many headers")
        body = b"" if status in (204, 304) else self._body(reader, found)
        is_last = version == "HTTP/1.0" or found.get("connection", "").lower() == "close"
        if is_last or (status not in (204, 304) and not _has_end(found)):
            self.close()
        return HubAnswer(status, body, _seconds(found.get("retry-after")))

    def _body(self, reader: BinaryIO, found: dict[str, str]) -> bytes:
        if found.get("transfer-encoding", "").lower() == "chunked":
            return _chunks(reader)
        length = found.get("content-length")
        if length is None:
            whole = reader.read(MAX_ANSWER_BYTES + 1)
        elif length.isascii() and length.isdigit() and len(length) < 10:
            whole = reader.read(min(int(length), MAX_ANSWER_BYTES + 1))
            if len(whole) < min(int(length), MAX_ANSWER_BYTES + 1):
                raise http.client.IncompleteRead(whole)
        else:
            raise http.client.HTTPException("its length is not a number")
        if len(whole) > MAX_ANSWER_BYTES:
            raise http.client.HTTPException("the answer is larger than is taken")
        return whole

    def close(self) -> None:
        """Closes it. The next request opens another one."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._open is not None:
            self._open.close()
            self._open = None


def _line(reader: BinaryIO) -> str:
    line = reader.readline(_MOST_LINE + 1)
    if not line.endswith(b"\n"):
        raise http.client.RemoteDisconnected("the connection ended") if not line else http.client.LineTooLong("header")
    return line.decode("latin-1").rstrip("\r\n")


def _has_end(found: dict[str, str]) -> bool:
    return "content-length" in found or found.get("transfer-encoding", "").lower() == "chunked"


def _chunks(reader: BinaryIO) -> bytes:
    parts: list[bytes] = []
    total = 0
    while True:
        size = int(_line(reader).split(";")[0], 16)
        total += size
        if size < 0 or total > MAX_ANSWER_BYTES:
            raise http.client.HTTPException("the answer is larger than is taken")
        part = reader.read(size)
        if len(part) < size:
            raise http.client.IncompleteRead(part)
        parts.append(part)
        while line := _line(reader):
            if size or len(line) > _MOST_LINE:
                raise http.client.HTTPException("a piece does not end where it should")
        if not size:
            return b"".join(parts)


def _seconds(text: str | None) -> float | None:
    return min(float(text), 60.0) if text and text.isdigit() and len(text) < 10 else None


def _reason(error: Exception) -> str:
    return "it takes too long" if isinstance(error, TimeoutError) else (str(error)[:200] or type(error).__name__)
