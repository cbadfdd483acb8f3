"""What an agent says in a session. Nothing here waits: a thread of its own sends it."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal, overload

from .checks import check_event
from .consent import BoundAction, Risk, bind, shown
from .errors import CancelledByPerson, HubRefused, SessionEnded, WrongCall
from .ids import fresh_id
from .messages import Event
from .outcome import Outcome
from .output import Output, through, whole
from .tools import Tool, args_summary

if TYPE_CHECKING:
    from .asking import PendingAsk
    from .hub import Hub

ErrorCategory = Literal["transient", "permanent", "requires_user", "unknown"]
"""Whether trying again helps."""

StateName = Literal["thinking", "calling_tool", "writing_output", "deciding", "handing_off"]
"""What an agent is doing. The kit says most of it by itself."""


class SessionReports:
    """The part of a session that is the same in sync and in async programs."""

    _is_async = False

    def __init__(self, hub: Hub, session_id: str) -> None:
        self.id = session_id
        """The id of the session, for logs."""
        self._hub = hub
        self._lock = threading.RLock()
        self._is_started = False
        self._has_ended = False
        self._is_ending = False
        self._is_silent = False
        self._is_cancelled = threading.Event()
        self._state = "idle"
        self._outputs: list[Output] = []
        self._tools: list[Tool] = []
        self._asks: list[PendingAsk] = []
        self._steers: list[str] = []

    # What the agent says.

    def say(self, text: str, *, language: str | None = None) -> None:
        """Says a text of one sentence or more."""
        with self.output(language=language) as output:
            output.write(whole(text))

    def output(self, *, language: str | None = None, content_type: str | None = None) -> Output:
        """Begins a text that is written piece by piece. It is sent in sentences."""
        output_id = fresh_id("out_")
        fixed = {"language": language, "content_type": content_type}
        more = {key: value for key, value in fixed.items() if value is not None}

        def send(chunk: str, is_last: bool) -> None:
            self._enter("writing_output")
            fields = {"chunk": chunk, "complete": is_last, "output_id": output_id, **more}
            self._report("output.streaming", fields, always=is_last)

        self._check_open()
        # Nothing is sent yet, so that a wrong language is an error of this call.
        check_event("agent.output.streaming", {"chunk": "", "complete": True, "position": 0, **more})
        output = Output(send, self._forget_output)
        with self._lock:
            self._outputs.append(output)
        return output

    @overload
    def stream(self, source: Iterable[str], *, language: str | None = None) -> Iterator[str]: ...
    @overload
    def stream(self, source: AsyncIterable[str], *, language: str | None = None) -> AsyncIterator[str]: ...
    def stream(
        self, source: Iterable[str] | AsyncIterable[str], *, language: str | None = None
    ) -> Iterator[str] | AsyncIterator[str]:
        """Passes on every token of an iterator, and says them in sentences on the way."""
        return through(self.output(language=language), source)

    def progress(
        self,
        words: str | None = None,
        *,
        percent: float | None = None,
        step: int | None = None,
        total_steps: int | None = None,
        eta_ms: int | None = None,
    ) -> None:
        """Says how far a long task is."""
        stated = {"description": words, "percent": percent, "step": step, "total_steps": total_steps}
        progress = {key: value for key, value in stated.items() if value is not None}
        if not progress:
            raise WrongCall("The progress says nothing. Give words, percent, or step with total_steps.")
        fields: dict[str, Any] = {"progress": progress}
        if words is not None:
            fields["summary_normal"] = words
        if eta_ms is not None:
            fields["eta_ms"] = eta_ms
        self._report("progress.updated", fields)

    def state(self, state: StateName | str, words: str | None = None) -> None:
        """Says what the agent is doing now. The kit says by itself when it thinks, writes and runs tools."""
        fields = {"from_state": self._state, "to_state": state}
        if words is not None:
            fields["summary_normal"] = words
        check_event("agent.state.changed", fields)
        del fields["from_state"]
        self._report("state.changed", fields, is_checked=True)
        self._state = state

    def tool(
        self,
        name: str,
        words: str | None = None,
        *,
        args: Mapping[str, Any] | None = None,
        consent: Outcome | None = None,
        risk: Risk | None = None,
        irreversible: bool | None = None,
        description: str | None = None,
    ) -> Tool:
        """A tool that runs in a `with` block. One that could hurt needs the `consent` of a person."""
        self._check_open()
        if consent is None and (irreversible or risk == "high"):
            raise WrongCall(f"The tool {name} could hurt. Ask with confirm(), and give its outcome as consent=.")
        if consent is not None:
            self._check_consent(consent, name)
            risk, irreversible = risk or _risk(consent.risk), consent.irreversible
        stated: dict[str, Any] = {
            "tool": name,
            "tool_call_id": fresh_id("call_"),
            "summary_normal": words or f"Running {name}.",
            "args_summary": args_summary(args) if args else None,
            "description": description,
            "risk_level": risk,
            "irreversible": irreversible,
        }
        fields = {key: value for key, value in stated.items() if value is not None}
        own = dict(args) if args else None
        if consent is not None and consent.digest is not None:
            own = self._bound_args(consent, name, args)
            self._extend(fields, {"action_digest": consent.digest})
        check_event("agent.tool.invoked", fields)
        return Tool(self, name, fields, consent, own, fields["tool_call_id"], self._forget_tool, self._is_async)

    def _check_consent(self, consent: Outcome, name: str) -> None:
        consent.or_raise()
        if consent.session_id != self.id:
            raise WrongCall("This consent was given in another session. Ask in this one.")
        if consent.tool is not None and consent.tool != name:
            raise WrongCall(f"This consent is for the tool {consent.tool}, not for {name}. Ask again.")

    def _bound_args(self, consent: Outcome, name: str, args: Mapping[str, Any] | None) -> dict[str, Any]:
        # Copied first, so that what runs is what is compared.
        now = bind(name, args or {})
        BoundAction(name, {}, consent.digest or "").check(now.args, consent)
        return now.args

    def handoff(
        self,
        reason: str,
        *,
        to: Literal["human", "specialist_agent", "escalation_queue"] = "human",
        target_uri: str | None = None,
    ) -> None:
        """Says that a person or another agent should take over."""
        fields: dict[str, Any] = {"reason": reason, "target_kind": to, "urgency": "critical"}
        if target_uri is not None:
            fields["target_uri"] = target_uri
        self._report("handoff.requested", fields)

    def report(self, event: Event) -> None:
        """Says any event as it is, for what the other methods do not have. `messages` has its type."""
        fields: dict[str, Any] = dict(event)
        name = str(fields.pop("type", "")).rsplit(":agent.", 1)[-1]
        if name.startswith(("session.", "awaiting.", "tool.invoked")) or f"agent.{name}" not in _event_names():
            raise WrongCall(f"The event {name!r} has a method of its own, or is not known. Use session(), ask(), tool().")
        self._report(name, fields)

    # How a session ends.

    def end(self, words: str = "Done.", **fields: Any) -> None:
        """Ends the session well. The `with` block does this for you."""
        self._end("session.completed", {"summary_normal": words, **fields})

    def error(self, words: str, *, recoverable: bool = False, category: ErrorCategory = "permanent") -> None:
        """Ends the session with an error. An exception in the `with` block does this for you."""
        fields = {
            "summary_normal": words[:16384] or "It failed.",
            "error_category": category,
            "recoverable": recoverable,
            "urgency": "critical",
        }
        self._end("session.errored", fields)

    def cancelled(self, words: str, by: Literal["user", "producer", "timeout", "system"] = "producer") -> None:
        """Ends the session before it is done."""
        self._end("session.cancelled", {"summary_normal": words, "cancelled_by": by})

    @property
    def has_ended(self) -> bool:
        """Whether the session has ended."""
        return self._has_ended

    @property
    def is_cancelled(self) -> bool:
        """Whether the person wants this session to stop."""
        return self._is_cancelled.is_set()

    def check_cancelled(self) -> None:
        """Raises `CancelledByPerson` if the person wants this session to stop. Long work calls it now and then."""
        if self._is_cancelled.is_set():
            raise CancelledByPerson

    def steers(self) -> list[str]:
        """What the person told this session to do differently, since the last call. It is never consent."""
        with self._lock:
            told, self._steers = self._steers, []
            return told

    # Inside.

    def start(self, fields: dict[str, Any]) -> None:
        """Begins the session. `Hub.session` does this for you."""
        self._is_started = True
        self._is_silent = not self._report("session.started", fields)
        self._enter("thinking")

    def _end(self, name: str, fields: dict[str, Any]) -> None:
        with self._lock:
            if self._has_ended or self._is_ending:
                raise SessionEnded("This session has ended. Begin another one with hub.session().")
            check_event(f"agent.{name}", fields)
            self._is_ending = True
            tools, outputs, asks = list(self._tools), list(self._outputs), list(self._asks)
        # Not under the lock: another thread may be writing, and needs the lock to send what it writes.
        for tool in tools:
            tool.fail("The session ended before it was done.")
            tool.end()
        for output in outputs:
            output.close()
        for ask in asks:
            self._hub.asker.withdraw(ask)
        with self._lock:
            self._report(name, fields, always=True, is_checked=True)
            self._has_ended = True
        self._hub.forget_session(self)

    def _check_open(self) -> None:
        if self._has_ended or self._is_ending:
            raise SessionEnded("This session has ended, so nothing may follow. Begin another one with hub.session().")
        if not self._is_started:
            raise WrongCall("This session has not begun. Write: with hub.session(...) as session.")
        if not self._is_async:
            self.check_cancelled()

    def _report(
        self,
        name: str,
        fields: dict[str, Any],
        *,
        always: bool = False,
        is_checked: bool = False,
        answer: Future[HubRefused | None] | None = None,
        must_hurry: bool = False,
    ) -> bool:
        if not is_checked:
            needed = {"position": 0} if name == "output.streaming" else {}
            check_event(f"agent.{name}", {**needed, **fields})
        with self._lock:
            if always:
                if self._has_ended:
                    return False
            else:
                self._check_open()
            if self._is_silent:
                return False
            event = self._hub.event(name, self.id, fields)
            return self._hub.outbox.add(self.id, event, always, answer, must_hurry)

    def _enter(self, state: str) -> None:
        with self._lock:
            is_busy = state != "calling_tool" and bool(self._tools)
            is_over = self._has_ended or self._is_ending or self._is_cancelled.is_set()
            if self._state == state or is_busy or is_over:
                return
            self._state = state
            self._report("state.changed", {"to_state": state}, is_checked=True)

    def flush(self) -> None:
        """Sends all that was written until now, also in the middle of a sentence."""
        with self._lock:
            outputs = list(self._outputs)
        for output in outputs:
            output.flush()

    def report_tool(
        self, tool: Tool, fields: dict[str, Any], must_come: bool, answer: Future[HubRefused | None]
    ) -> bool:
        """Announces a tool. `Tool` does this for you."""
        self.flush()
        self._enter("calling_tool")
        with self._lock:
            self._check_open()
            self._tools.append(tool)
        always = must_come and not self._has_ended
        return self._report("tool.invoked", fields, always=always, answer=answer, must_hurry=must_come)

    def report_tool_end(self, fields: dict[str, Any]) -> None:
        """Says how a tool ended. `Tool` does this for you."""
        self._report("tool.completed", fields, always=True)
        self._enter("thinking")

    def _forget_output(self, output: Output) -> None:
        with self._lock:
            if output in self._outputs:
                self._outputs.remove(output)

    def _forget_tool(self, tool: Tool) -> None:
        with self._lock:
            if tool in self._tools:
                self._tools.remove(tool)

    def _extend(self, fields: dict[str, Any], data: dict[str, Any]) -> None:
        own = fields.setdefault("extensions", {}).setdefault("agentvoice", {})
        own.update(data)

    def _bound_fields(self, bound: BoundAction) -> dict[str, Any]:
        fields: dict[str, Any] = {"extra_context": {"arguments": shown(bound.args)}} if bound.args else {}
        self._extend(fields, {"tool": bound.tool, "action_digest": bound.digest})
        return fields


def _risk(text: str | None) -> Risk | None:
    known: dict[str, Risk] = {"low": "low", "medium": "medium", "high": "high"}
    return known.get(text or "")


def _event_names() -> frozenset[str]:
    from .checks import tables

    return frozenset(tables()["events"])
