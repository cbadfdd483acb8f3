"""Ids that nobody can guess."""

from __future__ import annotations

import secrets


def fresh_id(prefix: str) -> str:
    """The prefix and 32 hexadecimal digits."""
    return prefix + secrets.token_hex(16)
