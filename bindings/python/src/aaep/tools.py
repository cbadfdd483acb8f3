"""A tool while it runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .errors import HubRefused, NotAccepted, WrongCall
from .outcome import Outcome

if TYPE_CHECKING:
    from .reporting import SessionReports

ANNOUNCE_SECONDS = 10.0
"""How long a tool that needs consent waits until the hub has taken its announcement. Then it does not run."""
_ODD = re.compile(r"[^A-Za-z0-9_.-]")


def tool_name(name: str) -> str:
    """A name of a framework as a name that the protocol takes: a letter or underscore, then letters, digits, `_.-`."""
    plain = _ODD.sub("_", name)[:255]
    return plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"


def args_summary(args: Mapping[str, Any]) -> str:
    """Arguments in a few words. The hub removes secrets."""
    return "; ".join(f"{name}: {str(value)[:120]}" for name, value in args.items())[:600]


class Tool:
    """A tool that runs in the `with` block. People hear that it begins, and how it ends.

    A tool with a consent is announced before the block is entered, and the block is entered only if the hub has taken
    the announcement: otherwise `NotAccepted` is raised, and nothing may be done.
    """

    def __init__(
        self,
        session: SessionReports,
        name: str,
        invoked: dict[str, Any],
        consent: Outcome | None,
        args: dict[str, Any] | None,
        call_id: str,
        on_end: Callable[[Tool], None],
        must_await: bool,
    ) -> None:
        self.name = name
        self.args: dict[str, Any] = args or {}
        """The arguments. With a consent, exactly those that the person consented to: run the tool with these."""
        self._session = session
        self._invoked = invoked
        self._consent = consent
        self._call_id = call_id
        self._on_end = on_end
        self._must_await = must_await
        self._is_told = False
        self._is_over = False
        self._status = "success"
        self._words: str | None = None
        self._error: str | None = None

    def done(self, words: str) -> None:
        """Says in a sentence what came of it. Sent when the block ends."""
        self._words = words

    def fail(self, words: str) -> None:
        """Says that it failed, and how. Sent when the block ends. An exception does the same by itself."""
        self._status, self._error = "error", words

    def _begin(self) -> Future[HubRefused | None]:
        answer: Future[HubRefused | None] = Future()
        if self._consent is not None and not self._consent.use():
            raise NotAccepted(self._consent, "This consent was used already, and it is for one action. Ask again.")
        self._is_told = self._session.report_tool(self, self._invoked, self._consent is not None, answer)
        if not self._is_told and self._consent is not None:
            self._over(None)
            raise NotAccepted(self._consent, "The hub is away, and too much waits for it. The tool was not run.")
        return answer

    def _judge(self, refused: HubRefused | None) -> None:
        assert self._consent is not None
        if refused is not None:
            self._is_told = False
            self._over(None)
            raise NotAccepted(self._consent, f"The hub refuses this tool, so it was not run. {refused}")

    def _too_late(self) -> NotAccepted:
        assert self._consent is not None
        self.fail("It was not run, because the hub did not answer.")
        self._over(None)
        return NotAccepted(self._consent, "The hub did not take the announcement of the tool, so it was not run.")

    def begin(self) -> Tool:
        """Announces the tool. The `with` block does this for you."""
        if self._must_await and self._consent is not None:
            raise WrongCall("This tool waits for the hub. In an async session, write: async with session.tool(...)")
        answer = self._begin()
        if self._consent is not None:
            try:
                refused = answer.result(ANNOUNCE_SECONDS)
            except (FutureTimeout, TimeoutError):
                raise self._too_late() from None
            self._judge(refused)
        return self

    async def begin_async(self) -> Tool:
        """Announces the tool, in an async session. The `async with` block does this for you."""
        answer = self._begin()
        if self._consent is not None:
            try:
                refused = await asyncio.wait_for(asyncio.wrap_future(answer), ANNOUNCE_SECONDS)
            except (asyncio.TimeoutError, TimeoutError):
                raise self._too_late() from None
            self._judge(refused)
        return self

    def end(self, error: BaseException | None = None) -> None:
        """Says how the tool ended. The `with` block does this for you."""
        if isinstance(error, (KeyboardInterrupt, asyncio.CancelledError)):
            self.fail("It was stopped.")
        elif error is not None:
            self.fail(str(error) or type(error).__name__)
        self._over(error)

    def _over(self, _error: BaseException | None) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._on_end(self)
        if self._is_told:
            fields: dict[str, Any] = {"tool": self.name, "tool_call_id": self._call_id, "status": self._status}
            if self._error is not None:
                fields["error_message"] = self._error.strip()[:4096] or "It failed."
            if self._words:
                fields["summary_normal"] = self._words[:16384]
            self._session.report_tool_end(fields)

    def __enter__(self) -> Tool:
        return self.begin()

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.end(error)

    async def __aenter__(self) -> Tool:
        return await self.begin_async()

    async def __aexit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.end(error)
