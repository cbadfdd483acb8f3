"""The events that ask, and what their outcomes mean. The same in sync and in async programs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from .asking import Settlement
from .checks import check_event
from .consent import BoundAction, NeedsConsent, Risk, bind
from .errors import NoAnswer, WrongCall
from .outcome import Outcome, OutcomeName, message_for
from .reporting import SessionReports

Answer = str | bool | float
"""What a person answered: text, yes or no, a number, or the value of a choice."""

AnswerType = Literal["text", "yes_no", "number"]
"""What kind of answer a question wants, if it has no choices."""

_RESPONSE_TYPES = {"text": "freetext", "yes_no": "yes_no", "number": "numeric"}


@dataclass(frozen=True)
class Field:
    """One question of a form."""

    question: str
    type: AnswerType = "text"
    choices: Sequence[str] | Mapping[str, str] | None = None
    required: bool = True


@dataclass(frozen=True)
class ConfirmationEvent:
    """A confirmation that is ready to be sent."""

    fields: dict[str, Any]
    bound: BoundAction | None
    seconds: float


def confirmation(
    session: SessionReports,
    action: str,
    *,
    consequence: str,
    risk: Risk | None = None,
    irreversible: bool | None = None,
    timeout: int = 120,
    max_timeout: int | None = None,
    default: Literal["reject", "accept"] = "reject",
    tool: str | None = None,
    args: Mapping[str, Any] | None = None,
    details: str | None = None,
) -> ConfirmationEvent:
    """The event of a confirmation. Raises `WrongCall` if it could not be sent, or should not."""
    if args is not None and tool is None:
        raise WrongCall("Arguments belong to a tool. Give tool= too.")
    stated: dict[str, Any] = {
        "action": action,
        "consequence": consequence,
        "risk_level": risk,
        "irreversible": irreversible,
        "timeout_seconds": timeout,
        "default_decision": default,
        "summary_detailed": details,
        "urgency": "critical",
    }
    fields = {key: value for key, value in stated.items() if value is not None}
    bound = bind(tool, args or {}) if tool is not None else None
    if bound is not None:
        fields |= session._bound_fields(bound)  # pyright: ignore[reportPrivateUsage]
    _limit(session, fields, timeout, max_timeout)
    check_event("agent.awaiting.confirmation", fields)
    return ConfirmationEvent(fields, bound, max_timeout or timeout)


def for_tool(session: SessionReports, tool: str, args: Mapping[str, Any], needs: NeedsConsent) -> ConfirmationEvent:
    """The event that asks whether this tool may run with these arguments."""
    return confirmation(
        session,
        needs.words(dict(args)),
        consequence=needs.consequence,
        risk=needs.risk,
        irreversible=needs.irreversible,
        timeout=needs.timeout,
        tool=tool,
        args=args,
    )


def _limit(session: SessionReports, fields: dict[str, Any], timeout: int, longest: int | None) -> None:
    if longest is None:
        return
    if longest < timeout:
        raise WrongCall(f"max_timeout is {longest}, and timeout is {timeout}. Give at least as much.")
    session._extend(fields, {"max_timeout_seconds": longest})  # pyright: ignore[reportPrivateUsage]


def outcome_of(session: SessionReports, asked: ConfirmationEvent, settled: Settlement) -> Outcome:
    """What the settlement means. An accept that nobody gave is consent only to what is harmless."""
    name, fields = settled.name, asked.fields
    is_harmless = fields.get("risk_level") == "low" and fields.get("irreversible") is False
    is_default = settled.decided_by in ("timeout", "no_listener") and fields["default_decision"] == "accept"
    if name == "accept" and not (settled.decided_by == "reply" or (is_default and is_harmless)):
        name = "unanswered"
    if name not in ("accept", "reject", "unanswered", "withdrawn", "unreachable", "refused"):
        name = "refused"
    message = message_for(name, settled.decided_by)
    return Outcome(
        name,
        settled.decided_by,
        f"{message} {settled.message}".strip(),
        session.id,
        asked.bound.tool if asked.bound else None,
        asked.bound.digest if asked.bound else None,
        fields.get("risk_level"),
        fields.get("irreversible"),
    )


def clarification(
    session: SessionReports,
    question: str,
    *,
    type: AnswerType = "text",
    choices: Iterable[str] | Mapping[str, str] | None = None,
    timeout: int = 300,
    max_timeout: int | None = None,
    context: str | None = None,
) -> dict[str, Any]:
    """The event of a question. Raises `WrongCall` if it could not be sent."""
    fields: dict[str, Any] = {"question": question, "timeout_seconds": timeout, "urgency": "critical"}
    if context is not None:
        fields["context"] = context
    if choices is not None:
        if isinstance(choices, str):
            raise WrongCall("choices is text. Give a list of texts, or a dict of values and labels.")
        labels = dict(cast("Mapping[str, str]", choices)) if isinstance(choices, Mapping) else {it: it for it in choices}
        fields["choices"] = [{"value": value, "label": label} for value, label in labels.items()]
        fields["accepted_response_kinds"] = ["multiple_choice"]
        if not fields["choices"]:
            raise WrongCall("choices is empty. Offer two or more, or leave it out.")
    else:
        if type not in _RESPONSE_TYPES:
            raise WrongCall(f"type is {type!r}. Use one of: {', '.join(map(repr, _RESPONSE_TYPES))}.")
        fields["accepted_response_kinds"] = [_RESPONSE_TYPES[type]]
    _limit(session, fields, timeout, max_timeout)
    check_event("agent.awaiting.clarification", fields)
    return fields


def answer_of(session: SessionReports, fields: dict[str, Any], settled: Settlement) -> Answer:
    """The answer of the person. Raises `NoAnswer` if there is none that the question allows."""
    value = settled.response
    if settled.name == "answered":
        expected = fields["accepted_response_kinds"][0]
        if expected == "yes_no" and isinstance(value, str) and value.lower() in ("yes", "no"):
            value = value.lower() == "yes"
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        fits = {
            "freetext": isinstance(value, str),
            "yes_no": isinstance(value, bool),
            "numeric": is_number,
            "multiple_choice": value in [choice["value"] for choice in fields.get("choices", [])],
        }
        if fits[expected]:
            return cast(Answer, value)
    name = settled.name if settled.name in ("withdrawn", "unreachable", "refused") else "unanswered"
    messages = {
        "unanswered": "Nobody answered the question.",
        "withdrawn": "The question was withdrawn.",
        "unreachable": "Nobody could be asked, because the hub cannot be reached.",
        "refused": "Nobody was asked, because the hub refused the question.",
    }
    message = f"{messages[name]} {settled.message}".strip()
    raise NoAnswer(Outcome(cast(OutcomeName, name), settled.decided_by, message, session.id))
