"""A session: one task of an agent, from its beginning to its end."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any, Generic, Literal, NoReturn, TypeVar

from .asking import PendingAsk, Settlement
from .asks import (
    Answer,
    AnswerType,
    ConfirmationEvent,
    Field,
    answer_of,
    clarification,
    confirmation,
    for_tool,
    outcome_of,
)
from .consent import NeedsConsent, Risk, bind
from .errors import CancelledByPerson, NoAnswer
from .outcome import Outcome
from .reporting import SessionReports
from .tools import Tool, tool_name

T = TypeVar("T")
_current: contextvars.ContextVar[AskingSession | None] = contextvars.ContextVar("aaep_session", default=None)


def current_session() -> AskingSession | None:
    """The session whose `with` block this runs in, if there is one."""
    return _current.get()


class Awaited(Generic[T], Awaitable[T]):
    """Something to await. It is never true or false by itself, so that a forgotten `await` is no consent."""

    def __init__(self, run: Callable[[], Awaitable[T]]) -> None:
        self._run: Callable[[], Awaitable[T]] | None = run

    def __await__(self) -> Generator[Any, None, T]:
        run, self._run = self._run, None
        if run is None:
            raise RuntimeError("This was awaited before, and nobody is asked twice. Keep the answer.")
        return run().__await__()

    def __bool__(self) -> NoReturn:
        raise TypeError("This is not an answer yet. Write: await session.confirm(...), await session.ask(...)")


class AskingSession(SessionReports):
    """Asks, in both ways of waiting."""

    def _send_ask(self, name: str, fields: dict[str, Any], seconds: float) -> PendingAsk:
        self._check_open()
        self.check_cancelled()
        self.flush()
        with self._lock:
            event = self._hub.event(name, self.id, fields)
            ask = self._hub.asker.ask(event, self.id, seconds)
            self._asks.append(ask)
            # The hub says itself that people are waited for, and the next state of ours follows that.
            self._state = "awaiting_input"
        if self._is_silent:
            self._hub.asker.withdraw(ask)
        return ask

    def _end_ask(self, ask: PendingAsk) -> None:
        if not ask.result.done():
            self._hub.asker.withdraw(ask)
        with self._lock:
            if ask in self._asks:
                self._asks.remove(ask)

    def _wait(self, name: str, fields: dict[str, Any], seconds: float) -> Settlement:
        ask = self._send_ask(name, fields, seconds)
        try:
            settled = ask.result.result()
        finally:
            # Also when the program is interrupted: nobody goes on being asked.
            self._end_ask(ask)
        self.check_cancelled()
        return settled

    async def _wait_async(self, name: str, fields: dict[str, Any], seconds: float) -> Settlement:
        ask = self._send_ask(name, fields, seconds)
        try:
            settled = await asyncio.shield(asyncio.wrap_future(ask.result))
        finally:
            self._end_ask(ask)
        self.check_cancelled()
        return settled

    def confirm_blocking(self, asked: ConfirmationEvent) -> Outcome:
        """Asks and waits in this thread."""
        return self._outcome(asked, self._wait("awaiting.confirmation", asked.fields, asked.seconds))

    async def confirm_async(self, asked: ConfirmationEvent) -> Outcome:
        """Asks and waits in the event loop."""
        return self._outcome(asked, await self._wait_async("awaiting.confirmation", asked.fields, asked.seconds))

    def _outcome(self, asked: ConfirmationEvent, settled: Settlement) -> Outcome:
        if settled.name == "accept":
            # The hub says so itself when it tells that the question is settled.
            self._state = "calling_tool"
        return outcome_of(self, asked, settled)

    def _answer_blocking(self, fields: dict[str, Any]) -> Answer:
        return answer_of(self, fields, self._wait("awaiting.clarification", fields, _seconds(fields)))

    async def _answer_async(self, fields: dict[str, Any]) -> Answer:
        return answer_of(self, fields, await self._wait_async("awaiting.clarification", fields, _seconds(fields)))

    was_told_cancelled = False
    """Whether the end of the session says that the person cancelled it."""

    def _close(self, error: BaseException | None) -> None:
        """Ends the session as its block ended."""
        if self.has_ended:
            return
        if self.is_cancelled or isinstance(error, CancelledByPerson):
            self.was_told_cancelled = True
            self.cancelled("You stopped it.", by="user")
        elif isinstance(error, (KeyboardInterrupt, asyncio.CancelledError, GeneratorExit)):
            self.cancelled("It was stopped.", by="producer")
        elif error is not None and not isinstance(error, SystemExit):
            self.error(f"It failed: {str(error) or type(error).__name__}")
        else:
            self.end()

    @contextmanager
    def guard_blocking(
        self, tool: str, args: Mapping[str, Any], needs: NeedsConsent | None = None
    ) -> Generator[Tool, None, None]:
        """As `guard`, in this thread."""
        name = tool_name(tool)
        if needs is None:
            running = self.tool(name, args=args)
            running._must_await = False  # pyright: ignore[reportPrivateUsage]
            with running:
                yield running
            return
        bound = bind(name, args)
        outcome = self.confirm_blocking(for_tool(self, name, bound.args, needs)).or_raise()
        bound.check(args, outcome)
        running = self.tool(name, args=bound.args, consent=outcome)
        # This thread has no event loop that could be kept waiting; `requires_consent` sees to that.
        running._must_await = False  # pyright: ignore[reportPrivateUsage]
        with running:
            yield running


def _seconds(fields: dict[str, Any]) -> float:
    own: dict[str, Any] = fields.get("extensions", {}).get("agentvoice", {})
    return float(own.get("max_timeout_seconds", fields["timeout_seconds"]))


class Session(AskingSession):
    """A session of a sync program: `with hub.session("...") as session`."""

    def say_all(self, source: Iterable[str], *, language: str | None = None) -> str:
        """Says a stream of tokens in sentences. Gives the whole text."""
        return "".join(self.stream(source, language=language))

    def confirm(
        self,
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
    ) -> Outcome:
        """Asks whether an action may be done. Only a true outcome is consent.

        Needs `consequence`, what follows from the action. Takes `risk`, `irreversible`, `timeout` in seconds,
        `max_timeout`, `default`, `details`, and `tool` with `args` to bind the consent to exactly these.
        """
        asked = confirmation(
            self,
            action,
            consequence=consequence,
            risk=risk,
            irreversible=irreversible,
            timeout=timeout,
            max_timeout=max_timeout,
            default=default,
            tool=tool,
            args=args,
            details=details,
        )
        return self.confirm_blocking(asked)

    def ask(
        self,
        question: str,
        *,
        type: AnswerType = "text",
        choices: Iterable[str] | Mapping[str, str] | None = None,
        timeout: int = 300,
        max_timeout: int | None = None,
        context: str | None = None,
    ) -> Answer:
        """Asks a question, and gives the answer. Raises `NoAnswer` if there is none.

        Takes `choices`, `type` ("text", "yes_no" or "number"), `timeout` in seconds, `max_timeout` and `context`.
        An answer is never consent: for that there is `confirm`.
        """
        fields = clarification(
            self,
            question,
            type=type,
            choices=choices,
            timeout=timeout,
            max_timeout=max_timeout,
            context=context,
        )
        return self._answer_blocking(fields)

    def form(self, fields: Mapping[str, Field]) -> dict[str, Answer]:
        """Asks one question after the other. Gives the answers; those that are not required may be missing."""
        answers: dict[str, Answer] = {}
        for name, it in fields.items():
            try:
                answers[name] = self.ask(it.question, type=it.type, choices=it.choices)
            except NoAnswer:
                if it.required:
                    raise
        return answers

    def guard(
        self, tool: str, args: Mapping[str, Any], needs: NeedsConsent | None = None
    ) -> AbstractContextManager[Tool]:
        """A `with` block in which a tool may run with `tool.args`, after the person consented if `needs` says so."""
        return self.guard_blocking(tool, args, needs)


class AsyncSession(AskingSession):
    """A session of an async program: `async with hub.session("...") as session`."""

    _is_async = True

    async def say_all(self, source: Iterable[str] | AsyncIterable[str], *, language: str | None = None) -> str:
        """Says a stream of tokens in sentences. Gives the whole text."""
        if isinstance(source, AsyncIterable):
            return "".join([token async for token in self.stream(source, language=language)])
        return "".join(self.stream(source, language=language))

    def confirm(
        self,
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
    ) -> Awaited[Outcome]:
        """Asks whether an action may be done. Only a true outcome is consent. The same as `Session.confirm`."""
        asked = confirmation(
            self,
            action,
            consequence=consequence,
            risk=risk,
            irreversible=irreversible,
            timeout=timeout,
            max_timeout=max_timeout,
            default=default,
            tool=tool,
            args=args,
            details=details,
        )
        return Awaited(lambda: self.confirm_async(asked))

    def ask(
        self,
        question: str,
        *,
        type: AnswerType = "text",
        choices: Iterable[str] | Mapping[str, str] | None = None,
        timeout: int = 300,
        max_timeout: int | None = None,
        context: str | None = None,
    ) -> Awaited[Answer]:
        """Asks a question, and gives the answer. The same as `Session.ask`."""
        fields = clarification(
            self,
            question,
            type=type,
            choices=choices,
            timeout=timeout,
            max_timeout=max_timeout,
            context=context,
        )
        return Awaited(lambda: self._answer_async(fields))

    async def form(self, fields: Mapping[str, Field]) -> dict[str, Answer]:
        """Asks one question after the other. Gives the answers; those that are not required may be missing."""
        answers: dict[str, Answer] = {}
        for name, it in fields.items():
            try:
                answers[name] = await self.ask(it.question, type=it.type, choices=it.choices)
            except NoAnswer:
                if it.required:
                    raise
        return answers

    @asynccontextmanager
    async def guard(
        self, tool: str, args: Mapping[str, Any], needs: NeedsConsent | None = None
    ) -> AsyncGenerator[Tool, None]:
        """A block in which a tool may run with `tool.args`, after the person consented if `needs` says so.

        Raises `NotAccepted` before the block if nobody consented.
        """
        name = tool_name(tool)
        if needs is None:
            async with self.tool(name, args=args) as running:
                yield running
            return
        bound = bind(name, args)
        outcome = (await self.confirm_async(for_tool(self, name, bound.args, needs))).or_raise()
        bound.check(args, outcome)
        async with self.tool(name, args=bound.args, consent=outcome) as running:
            yield running
