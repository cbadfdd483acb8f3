"""What all adapters share: which tools need consent, and the consents that were given and not used yet."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from ..asks import for_tool
from ..consent import Consents, NeedsConsent, bind
from ..digest import action_digest, canonical
from ..errors import NotAccepted, WrongCall
from ..outcome import Outcome
from ..session import AsyncSession
from ..tools import Tool, tool_name


def read_args(args: object) -> dict[str, Any]:
    """The arguments of a call, which some frameworks give as text. Raises `WrongCall` if they are not an object."""
    if isinstance(args, str):
        try:
            args = json.loads(args or "{}")
        except ValueError as error:
            raise WrongCall("The arguments of the tool are not JSON, so it was not run.") from error
    if args is None:
        return {}
    if not isinstance(args, Mapping):
        raise WrongCall("The arguments of the tool are not an object, so it was not run.")
    return dict(cast("Mapping[str, Any]", args))


def same_json(value: object, stated: object) -> bool:
    """Whether a value is the one that was stated, as far as it is JSON at all."""
    try:
        return canonical(value) == canonical(stated)
    except WrongCall:
        return True


class Gate:
    """Lets tools run: at once, or with the consent of the person for exactly these arguments."""

    def __init__(self, session: AsyncSession, consents: Consents | None = None) -> None:
        self.session = session
        self._consents = {tool_name(name): needs for name, needs in (consents or {}).items()}
        self._given: dict[str, list[Outcome]] = {}

    def needs(self, name: str) -> NeedsConsent | None:
        """What the person must be told before this tool runs; nothing if it needs no consent."""
        return self._consents.get(tool_name(name))

    async def ask(self, name: str, args: object, needs: NeedsConsent | None = None) -> Outcome:
        """Asks about a call of a tool. A consent is kept until the tool runs with these arguments."""
        known = needs or self.needs(name)
        if known is None:
            # The framework wants an approval for a tool that nobody described here: the safe description.
            known = NeedsConsent(f"Run the tool {name}.", "What it does may be impossible to undo.")
        bound = bind(name, read_args(args))
        outcome = await self.session.confirm_async(for_tool(self.session, bound.tool, bound.args, known))
        if outcome:
            self._given.setdefault(bound.digest, []).append(outcome)
        return outcome

    @asynccontextmanager
    async def run(self, name: str, args: object) -> AsyncIterator[Tool]:
        """A block in which a tool may run with `tool.args`. Raises `NotAccepted` before it if it may not."""
        plain, read = tool_name(name), read_args(args)
        given = self._take(plain, read)
        if given is not None:
            async with self.session.tool(plain, args=read, consent=given) as tool:
                yield tool
            return
        async with self.session.guard(plain, read, self.needs(plain)) as tool:
            yield tool

    def _take(self, name: str, args: dict[str, Any]) -> Outcome | None:
        if not self._given:
            return None
        try:
            waiting = self._given.get(action_digest(name, args), [])
        except WrongCall:
            return None
        return waiting.pop(0) if waiting else None

    def has_given(self, name: str, args: object) -> bool:
        """Whether there is an unused consent for exactly this call."""
        try:
            return bool(self._given.get(action_digest(tool_name(name), read_args(args))))
        except WrongCall:
            return False


def denial(error: NotAccepted | WrongCall) -> str:
    """What the model is told of a tool that did not run."""
    return f"{error} Do not try it again, and do not say that it was done."
