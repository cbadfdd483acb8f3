"""The digest of a tool with its arguments, as docs/extension.md describes it: SHA-256 of canonical JSON (RFC 8785)."""

from __future__ import annotations

import hashlib
import math
import re
from decimal import Decimal
from typing import cast

from .errors import WrongCall

MAX_DEPTH = 64
"""Arguments that nest deeper have no digest."""

_UNSAFE = 1 << 53
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPED = re.compile(r'["\\\x00-\x1f]')


def action_digest(tool: str, args: object) -> str:
    """The digest of a tool with its arguments. Raises `WrongCall` if the arguments have none."""
    text = f'{{"args":{canonical(args)},"tool":{_text(tool)}}}'
    return "sha-256:" + hashlib.sha256(text.encode()).hexdigest()


def canonical(value: object, depth: int = MAX_DEPTH) -> str:
    """A JSON value in its one written form."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (int, float)):
        return _number(value)
    if depth == 0:
        raise WrongCall(f"The arguments nest deeper than {MAX_DEPTH} levels. Flatten them.")
    if isinstance(value, (list, tuple)):
        items = cast("list[object] | tuple[object, ...]", value)
        return "[" + ",".join(canonical(item, depth - 1) for item in items) + "]"
    if isinstance(value, dict):
        return _members(cast("dict[object, object]", value), depth - 1)
    named = type(value).__name__
    raise WrongCall(f"An argument of the type {named} is not JSON. Use text, numbers, booleans, lists and dicts.")


def _members(value: dict[object, object], depth: int) -> str:
    names: list[str] = []
    for name in value:
        if not isinstance(name, str):
            raise WrongCall("A key in the arguments is not text. Write all keys as text.")
        names.append(name)
    # Sorted by UTF-16 code units, which big-endian bytes are in the same order as.
    names.sort(key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(f"{_text(name)}:{canonical(value[name], depth)}" for name in names) + "}"


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise WrongCall("A text has half of a surrogate pair, so it is not Unicode. Decode it correctly.") from error
    return '"' + _ESCAPED.sub(lambda it: _SHORT.get(it[0]) or f"\\u{ord(it[0]):04x}", text) + '"'


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise WrongCall("A number in the arguments is not finite, so it is not JSON. Leave it out.")
    if abs(value) >= _UNSAFE:
        raise WrongCall("A number in the arguments is 2^53 or more, where languages differ. Write it as text.")
    if isinstance(value, int) or value == int(value):
        return str(int(value))
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0")
    point = len(digits) + cast(int, exponent)
    minus = "-" if sign else ""
    if point > 0:
        return f"{minus}{shown[:point]}.{shown[point:]}"
    if point > -6:
        return f"{minus}0.{'0' * -point}{shown}"
    return f"{minus}{shown[0]}{'.' + shown[1:] if len(shown) > 1 else ''}e{point - 1}"
