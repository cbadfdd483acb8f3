"""How a question to a person ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .errors import NotAccepted

OutcomeName = Literal["accept", "reject", "unanswered", "withdrawn", "unreachable", "refused"]
"""`unreachable`: the hub was away. `refused`: the hub did not take the question."""

_MESSAGES: dict[str, str] = {
    "accept": "The person accepted.",
    "reject": "The person said no. It was not done.",
    "unanswered": "Nobody answered, so it was not done.",
    "withdrawn": "The question was withdrawn, so it was not done.",
    "unreachable": "Nobody could be asked, because the hub cannot be reached. It was not done.",
    "refused": "Nobody was asked, because the hub refused the question. It was not done.",
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a confirmation ended. It is true only if it is consent.

    Keep it for the tool that it is for: `session.tool(..., consent=outcome)`. It can be used once.
    """

    name: OutcomeName
    """How it ended. Only `accept` is consent."""
    decided_by: str
    """`reply`, `timeout`, `no_listener`, `withdrawn`, or `kit` where the hub could not be asked."""
    message: str = ""
    """A sentence for people and for models."""
    session_id: str = ""
    tool: str | None = None
    """The tool that the consent is for, if the question named it."""
    digest: str | None = None
    """The digest of tool and arguments that the consent is for."""
    risk: str | None = None
    irreversible: bool | None = None
    _uses: list[bool] = field(default_factory=list[bool], repr=False)

    def __bool__(self) -> bool:
        return self.name == "accept"

    def __eq__(self, other: object) -> bool:
        # An outcome that equals "accept" or True somewhere is an outcome that can be mistaken.
        return self is other

    __hash__ = object.__hash__

    def or_raise(self) -> Outcome:
        """This outcome if it is consent; raises `NotAccepted` otherwise."""
        if not self:
            raise NotAccepted(self)
        return self

    def use(self) -> bool:
        """Whether this consent is unused. It counts as used from now on."""
        # One append is atomic, so that two threads never both see the first use.
        self._uses.append(True)
        return bool(self) and len(self._uses) == 1


def message_for(name: str, decided_by: str) -> str:
    """The sentence for an outcome."""
    if name == "reject" and decided_by == "timeout":
        return "Nobody answered in time, so it was not done."
    if name == "reject" and decided_by == "no_listener":
        return "Nobody was there to be asked, so it was not done."
    return _MESSAGES.get(name, "Nobody consented, so it was not done.")
