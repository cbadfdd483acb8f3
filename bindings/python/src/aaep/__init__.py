"""Let people hear what your agent does, and ask them before it does something that cannot be undone.

    import aaep

    hub = aaep.Hub("photo-keeper", name="Photo keeper")
    with hub.session("Looking for old photos.") as session:
        session.say("I found 240 photos.")
        if session.confirm("Delete 240 photos.", consequence="They are gone for good.", irreversible=True):
            ...

Reporting never waits and never fails because the hub is away. Asking waits for the person, and whatever goes wrong
is a no. `messages` has the type of every message of the protocol, and `subscriber` the other side: assistive
technology that hears agents and lets people answer.
"""

from .asks import Answer, AnswerType, Field
from .consent import Consents, NeedsConsent, Risk
from .decorators import requires_consent, tool
from .digest import action_digest
from .errors import (
    AaepError,
    ArgumentsChanged,
    CancelledByPerson,
    HubAway,
    HubRefused,
    NoAnswer,
    NotAccepted,
    SessionEnded,
    UnsafeDefault,
    WrongCall,
)
from .hub import Hub
from .instructions import Accepts, Cancel, Instruction, Prompt, Steer
from .outcome import Outcome, OutcomeName
from .output import Output
from .session import AsyncSession, Awaited, Session, current_session
from .tools import Tool

__all__ = [
    "AaepError",
    "Accepts",
    "Answer",
    "AnswerType",
    "ArgumentsChanged",
    "AsyncSession",
    "Awaited",
    "Cancel",
    "CancelledByPerson",
    "Consents",
    "Field",
    "Hub",
    "HubAway",
    "HubRefused",
    "Instruction",
    "NeedsConsent",
    "NoAnswer",
    "NotAccepted",
    "Outcome",
    "OutcomeName",
    "Output",
    "Prompt",
    "Risk",
    "Session",
    "SessionEnded",
    "Steer",
    "Tool",
    "UnsafeDefault",
    "WrongCall",
    "action_digest",
    "current_session",
    "requires_consent",
    "tool",
]
__version__ = "0.1.0"
