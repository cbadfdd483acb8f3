"""Cuts a stream of tokens into pieces that are worth sending: sentences, or what comes nearest.

The hub cuts for each person again, with rules for many languages. Here it only matters that nothing is sent for each
token, that nothing is lost or repeated, and that words do not wait for long.
"""

from __future__ import annotations

import re
import time

# The end of a sentence and the blank after it, the end of a line, or a full stop of a script that has no blanks.
_END = re.compile(r"""[.!?…؟।]["'”’»)\]]*\s+|\n+|[。！？]["'”’」』）]*\s*""")
_MAY_END = frozenset(".!?…؟।\n。！？")
LONGEST = 600
"""A sentence of more characters is cut between two words."""
PATIENCE_SECONDS = 2.0
"""Words that have waited this long go out with the next token, without the end of their sentence."""


class SentenceCutter:
    """Collects tokens, and gives back whole sentences."""

    __slots__ = ("_is_ending", "_length", "_parts", "_since")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._since = 0.0
        self._is_ending = False

    def add(self, token: str) -> str:
        """Takes a token. Gives the text that should be sent now, which is mostly none."""
        now = time.monotonic()
        if not self._parts:
            self._since = now
        self._parts.append(token)
        self._length += len(token)
        is_ending = self._is_ending or not _MAY_END.isdisjoint(token)
        if not is_ending and self._length < LONGEST and now - self._since < PATIENCE_SECONDS:
            return ""
        text = "".join(self._parts)
        cut = 0
        for found in _END.finditer(text):
            cut = found.end()
        if not cut and (self._length >= LONGEST or now - self._since >= PATIENCE_SECONDS):
            cut = text.rfind(" ") + 1 or (len(text) if self._length >= LONGEST else 0)
        rest = text[cut:]
        self._parts = [rest] if rest else []
        self._length = len(rest)
        # A full stop at the very end waits for the blank that may follow it.
        self._is_ending = not _MAY_END.isdisjoint(rest[-4:])
        if cut:
            self._since = now
        return text[:cut]

    def rest(self) -> str:
        """All that has not been given back yet."""
        text = "".join(self._parts)
        self._parts, self._length, self._is_ending = [], 0, False
        return text
