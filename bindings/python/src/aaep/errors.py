"""Every error of the kit. All of them are `AaepError`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .outcome import Outcome


class AaepError(Exception):
    """Any error of this kit."""


class WrongCall(AaepError, ValueError):
    """The call is wrong, and nothing was sent. The message says what to change."""


class UnsafeDefault(WrongCall):
    """Silence would consent to something that could hurt."""


class SessionEnded(WrongCall):
    """The session has ended, so nothing may follow in it."""


class HubAway(AaepError):
    """The hub cannot be reached, or gives no answer."""


class HubRefused(AaepError):
    """The hub refuses. `code` names the rule; the message says what to do."""

    def __init__(self, code: str, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class NotAccepted(AaepError):
    """Nobody consented, so the action was not done. `outcome` says how the question ended."""

    def __init__(self, outcome: Outcome, message: str | None = None) -> None:
        super().__init__(message or outcome.message)
        self.outcome = outcome


class ArgumentsChanged(NotAccepted):
    """The arguments are not those that the person consented to, so the action was not done."""


class NoAnswer(AaepError):
    """Nobody answered the question. `outcome` says how it ended."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


class CancelledByPerson(AaepError):
    """The person wants what is done in this session to stop."""

    def __init__(self) -> None:
        super().__init__("The person cancelled this session. Stop the work, and do nothing more in it.")
