"""The hub, as an agent sees it."""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextvars import Token
from types import TracebackType
from typing import Any

from .address import find_hub
from .asking import AWAY_SECONDS, Asker
from .checks import check_event, check_text
from .errors import CancelledByPerson, HubRefused, WrongCall
from .http import JsonObject, read_token
from .ids import fresh_id
from .instructions import Cancel, Inbox, Instruction, Prompt, Steer, read_accepts
from .outbox import MAX_WAITING_BYTES, MAX_WAITING_EVENTS, Outbox
from .reporting import SessionReports
from .session import (
    AskingSession,
    AsyncSession,
    Session,
    _current,  # pyright: ignore[reportPrivateUsage]
)

log = logging.getLogger("aaep")

CONTEXTS = ["https://aaep-protocol.org/context/v1", "urn:uuid:ad788fbe-34bf-41c1-a6a9-7fc3ed86da4e"]
"""The context of the protocol, and that of our extension."""

CLOSE_SECONDS = 2.0
"""How long the end of a program waits at most until everything is sent."""


class Hub:
    """A hub, and the agent that speaks to it. One is enough for a program; it may be used from any thread.

    agent: the name by which the hub knows the agent, always the same.
    name: the name that people hear.
    project: where the agent works, as a person would say it, such as `work/shop`.
    language: the language of the words, such as `en-GB`.
    address, token: where the hub is; without them as for every command of `aaep`.
    accepts: what people may tell the agent: any of "prompt", "cancel" and "steer".
    on_refused: called in another thread with each event that the hub refused, and why. Without it, that is logged.
    """

    def __init__(
        self,
        agent: str,
        *,
        name: str | None = None,
        project: str | None = None,
        language: str | None = None,
        address: str | None = None,
        token: str | None = None,
        accepts: Iterable[str] = (),
        on_refused: Callable[[JsonObject, HubRefused], None] | None = None,
        away_seconds: float = AWAY_SECONDS,
        max_waiting_events: int = MAX_WAITING_EVENTS,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self._producer = {"agent_id": check_text(agent, "agent", 256)}
        if name is not None:
            self._producer["agent_name"] = check_text(name, "name", 256)
        self._project = check_text(project, "project", 200) if project is not None else None
        self._hints = {"primary_language": language} if language is not None else None
        if self._hints:
            check_event("agent.session.completed", {"summary_normal": "x", "localization_hints": self._hints})
        self._on_refused = on_refused
        self.address = find_hub(address)
        secret = read_token(token)
        self.outbox = Outbox(self.address, secret, self._refused, max_waiting_events, max_waiting_bytes)
        self.asker = Asker(self.address, secret, self.outbox, away_seconds)
        self._sessions: dict[str, SessionReports] = {}
        self._openings: dict[str, _Opening] = {}
        self._lock = threading.Lock()
        known = read_accepts(accepts)
        self._inbox = Inbox(self.address, secret, agent, known, self._instruct) if known else None
        # Not the hub itself: what was reported is sent also if nobody holds the hub any more.
        atexit.register(self.outbox.close, CLOSE_SECONDS)

    def session(
        self,
        words: str,
        *,
        prompt: Prompt | None = None,
        end: str = "Done.",
        **fields: Any,
    ) -> _Opening:
        """A session in a `with` or `async with` block. `words` say in a sentence what will be done.

        It ends as the block does: well, with the error that leaves the block, or cancelled. `end` is what people hear
        when it ends well. `fields` are further fields of `agent.session.started`, such as `tools_available`.
        """
        stated: dict[str, Any] = {"summary_normal": words, **fields}
        if prompt is not None:
            stated.setdefault("request_text", prompt.text)
        check_event("agent.session.started", stated)
        check_text(end, "end")
        return _Opening(self, stated, prompt.session_id if prompt else fresh_id("sess_"), end)

    def instructions(self) -> Iterator[Instruction]:
        """What people tell the agent, as it comes, until the hub is closed. Cancels reach their sessions by themselves."""
        inbox = self._inbox_or_raise()
        while (it := inbox.next()) is not None:
            yield it

    async def instructions_async(self) -> AsyncIterator[Instruction]:
        """The same in an async program."""
        inbox = self._inbox_or_raise()
        loop = asyncio.get_running_loop()
        while (it := await loop.run_in_executor(None, inbox.next)) is not None:
            yield it

    def ready(self, seconds: float = 10.0) -> bool:
        """Waits until people can tell the agent what it accepts. Whether they can."""
        return self._inbox_or_raise().wait_until_known(seconds)

    def flush(self, seconds: float = 10.0) -> bool:
        """Waits until everything is sent, but no longer than this. Whether it is."""
        return self.outbox.flush(seconds)

    def close(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Sends what can be sent within this time, and ends all threads. Whether everything was sent."""
        self.asker.close()
        if self._inbox is not None:
            self._inbox.close()
        is_sent = self.outbox.close(seconds)
        atexit.unregister(self.outbox.close)
        if not is_sent:
            log.warning("%s reports were not sent, because the hub is away.", self.outbox.waiting)
        return is_sent

    def __enter__(self) -> Hub:
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()

    def event(self, name: str, session_id: str, fields: dict[str, Any]) -> JsonObject:
        """An event of this agent, as it is sent. What is left out, the hub fills in."""
        event: JsonObject = {
            "type": f"aaep:agent.{name}",
            "event_id": fresh_id("evt_"),
            "session_id": session_id,
            "producer": self._producer,
            **fields,
        }
        if self._hints is not None:
            event.setdefault("localization_hints", self._hints)
        if self._project is not None and (name == "session.started" or name.startswith("awaiting.")):
            extensions = dict(event.get("extensions", {}))
            extensions["agentvoice"] = {**extensions.get("agentvoice", {}), "project": self._project}
            event["extensions"] = extensions
        if "agentvoice" in event.get("extensions", {}):
            event.setdefault("@context", CONTEXTS)
        return event

    def _inbox_or_raise(self) -> Inbox:
        if self._inbox is None:
            raise WrongCall('This agent accepts nothing. Write: Hub(..., accepts=["prompt", "cancel"]).')
        return self._inbox

    def _refused(self, event: JsonObject, error: HubRefused) -> None:
        if self._on_refused is None:
            log.warning("The hub refuses %s with %s: %s", event.get("type"), error.code, error)
            return
        self._on_refused(event, error)

    def _instruct(self, instruction: Instruction) -> None:
        with self._lock:
            session = self._sessions.get(instruction.session_id)
            opening = self._openings.get(instruction.session_id)
        if session is None:
            return
        if isinstance(instruction, Steer):
            with session._lock:  # pyright: ignore[reportPrivateUsage]
                session._steers.append(instruction.text)  # pyright: ignore[reportPrivateUsage]
        if isinstance(instruction, Cancel):
            session._is_cancelled.set()  # pyright: ignore[reportPrivateUsage]
            # First the block, so that it is interrupted and not answered: a framework may swallow the answer.
            if opening is not None:
                opening.cancel()
            for ask in list(session._asks):  # pyright: ignore[reportPrivateUsage]
                self.asker.withdraw(ask)

    def remember(self, session: SessionReports, opening: _Opening) -> None:
        """Knows a session, so that instructions find it."""
        with self._lock:
            self._sessions[session.id] = session
            self._openings[session.id] = opening

    def forget_session(self, session: SessionReports) -> None:
        """Forgets a session that has ended."""
        with self._lock:
            self._sessions.pop(session.id, None)
            self._openings.pop(session.id, None)
        self.outbox.forget(session.id)


class _Opening:
    """A session that begins with its block."""

    def __init__(self, hub: Hub, fields: dict[str, Any], session_id: str, end: str) -> None:
        self._hub = hub
        self._fields = fields
        self._session_id = session_id
        self._end = end
        self._session: AskingSession | None = None
        self._previous: Token[AskingSession | None] | None = None
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._has_cancelled = False

    def _open(self, session: AskingSession) -> None:
        if self._session is not None:
            raise WrongCall("This session was begun before. Call hub.session() again for another one.")
        self._session = session
        self._hub.remember(session, self)
        session.start(self._fields)
        self._previous = _current.set(session)

    def _close(self, error: BaseException | None) -> None:
        assert self._session is not None
        if self._previous is not None:
            _current.reset(self._previous)
        if error is None and not self._session.has_ended and not self._session.is_cancelled:
            self._session.end(self._end)
        else:
            self._session._close(error)  # pyright: ignore[reportPrivateUsage]

    def __enter__(self) -> Session:
        session = Session(self._hub, self._session_id)
        self._open(session)
        return session

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._close(error)
        self._tell_cancelled(error)

    async def __aenter__(self) -> AsyncSession:
        session = AsyncSession(self._hub, self._session_id)
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._open(session)
        return session

    async def __aexit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        self._close(error)
        if not self._has_cancelled or task is None:
            self._tell_cancelled(error)
            return
        if not isinstance(error, asyncio.CancelledError):
            # The block ended before the cancel reached it. It must not hit what comes after.
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                pass
        uncancel: Callable[[], int] | None = getattr(task, "uncancel", None)
        if uncancel is not None:
            uncancel()
        if isinstance(error, asyncio.CancelledError):
            raise CancelledByPerson from error
        self._tell_cancelled(error)

    def _tell_cancelled(self, error: BaseException | None) -> None:
        """A block that ended without noticing the cancel raises it at its end: people hear that it was stopped."""
        if error is None and self._session is not None and self._session.was_told_cancelled:
            raise CancelledByPerson

    def cancel(self) -> None:
        """Interrupts the block, because the person wants it to stop. Only an async block can be interrupted."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel_task)

    def _cancel_task(self) -> None:
        if self._task is not None and not self._has_cancelled:
            self._has_cancelled = True
            self._task.cancel()
