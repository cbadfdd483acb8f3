"""What the agent writes, sent in sentences."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import overload

from .checks import check_text
from .errors import WrongCall
from .sentences import SentenceCutter

MAX_PIECE = 4_000
"""The most characters that are sent at once. The hub takes more, and cuts long pieces again for each person."""

Send = Callable[[str, bool], None]
"""Sends a piece of the text, and whether it is the last one."""


class Output:
    """One text that the agent writes piece by piece. Use it in a `with` block, or call `close` at its end."""

    def __init__(self, send: Send, on_close: Callable[[Output], None]) -> None:
        self._send = send
        self._on_close = on_close
        self._cutter = SentenceCutter()
        self._lock = threading.Lock()
        self._is_closed = False
        self._has_sent = False

    def write(self, token: str) -> None:
        """Takes a piece of text of any length, such as a token. It is sent when its sentence is complete."""
        if not isinstance(token, str):
            raise WrongCall(f"A piece of text has the type {type(token).__name__}. Give text.")
        with self._lock:
            if self._is_closed:
                raise WrongCall("This output is closed. Begin another one with session.output().")
            ready = self._cutter.add(token)
            if ready:
                self._pieces(ready)

    def flush(self) -> None:
        """Sends what was written until now, also in the middle of a sentence."""
        with self._lock:
            if not self._is_closed:
                self._pieces(self._cutter.rest())

    def close(self) -> None:
        """Sends the rest. Nothing more can be written."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            rest = self._cutter.rest()
            try:
                if rest or self._has_sent:
                    self._pieces(rest, is_last=True)
            finally:
                self._on_close(self)

    def _pieces(self, text: str, is_last: bool = False) -> None:
        while len(text) > MAX_PIECE:
            cut = text.rfind(" ", 0, MAX_PIECE) + 1 or MAX_PIECE
            self._send(text[:cut], False)
            self._has_sent = True
            text = text[cut:]
        if text or is_last:
            self._send(text, is_last)
            self._has_sent = True

    def __enter__(self) -> Output:
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()


@overload
def through(output: Output, source: Iterable[str]) -> Iterator[str]: ...
@overload
def through(output: Output, source: AsyncIterable[str]) -> AsyncIterator[str]: ...
def through(output: Output, source: Iterable[str] | AsyncIterable[str]) -> Iterator[str] | AsyncIterator[str]:
    """Passes every token on unchanged, and writes it."""
    if isinstance(source, AsyncIterable):
        return _through_async(output, source)
    if isinstance(source, Iterable):
        return _through(output, [source] if isinstance(source, str) else source)
    raise WrongCall(f"A stream has the type {type(source).__name__}. Give an iterator of texts.")


def _through(output: Output, source: Iterable[str]) -> Iterator[str]:
    with output:
        for token in source:
            output.write(token)
            yield token


async def _through_async(output: Output, source: AsyncIterable[str]) -> AsyncIterator[str]:
    with output:
        async for token in source:
            output.write(token)
            yield token


def whole(text: object) -> str:
    """A text of any length that can be seen."""
    return check_text(text, "text", most=1_000_000)
