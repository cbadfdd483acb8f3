"""What a person has to consent to, and the binding of their consent to exactly these arguments."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .digest import action_digest, canonical
from .errors import ArgumentsChanged, WrongCall
from .outcome import Outcome
from .tools import tool_name

Risk = Literal["low", "medium", "high"]
"""How much harm an action could do."""

_MOST_TOLD = 16_000
_MOST_LEVELS = 6


@dataclass(frozen=True)
class NeedsConsent:
    """That a person must consent before a tool runs, and what they are told."""

    action: str | Callable[[dict[str, Any]], str]
    """What will be done, in a sentence. `{path}` stands for the argument `path`."""
    consequence: str
    """What follows from it, in a sentence."""
    risk: Risk = "high"
    irreversible: bool = True
    timeout: int = 120
    """How many seconds the person has."""

    def words(self, args: dict[str, Any]) -> str:
        """The action with the arguments filled in."""
        if not isinstance(self.action, str):
            return self.action(args)
        try:
            return self.action.format_map(_Plain(args))
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise WrongCall(f"The action {self.action!r} names an argument that is not there: {error}.") from error


class _Plain(dict[str, str]):
    """Arguments as text, so that a template reaches nothing inside them."""

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__({name: str(value) for name, value in args.items()})


Consents = Mapping[str, NeedsConsent]
"""Which tools need consent, by their names."""


@dataclass(frozen=True)
class BoundAction:
    """A tool with a private copy of its arguments, and their digest."""

    tool: str
    args: dict[str, Any]
    digest: str

    def check(self, args: Mapping[str, Any], outcome: Outcome) -> None:
        """Raises `ArgumentsChanged` unless these are still the same arguments."""
        try:
            is_same = action_digest(self.tool, dict(args)) == self.digest
        except WrongCall:
            is_same = False
        if not is_same:
            words = "The arguments changed after the person consented, so it was not done. Ask again."
            raise ArgumentsChanged(outcome, words)


def bind(tool: str, args: Mapping[str, Any]) -> BoundAction:
    """Copies the arguments and takes their digest. Raises `WrongCall` if they are not JSON."""
    name = tool_name(tool)
    # The digest is of the copy, so that nothing can change between the two.
    own = copy.deepcopy(dict(args))
    if len(canonical(own)) > _MOST_TOLD:
        raise WrongCall("The arguments are too long to be told to a person. Ask about less at once.")
    return BoundAction(name, own, action_digest(name, own))


def shown(args: dict[str, Any]) -> object:
    """The arguments in the form in which people are told them."""
    return args if _levels(args) <= _MOST_LEVELS else canonical(args)


def _levels(value: object) -> int:
    inner: list[object] = []
    if isinstance(value, dict):
        inner = list(value.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    elif isinstance(value, (list, tuple)):
        inner = list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    else:
        return 0
    return 1 + max((_levels(it) for it in inner), default=0)
