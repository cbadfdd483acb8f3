"""Decorators for the functions that are an agent's tools."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from .consent import NeedsConsent, Risk
from .errors import WrongCall
from .session import AskingSession, AsyncSession, current_session

F = TypeVar("F", bound=Callable[..., Any])


def requires_consent(
    action: str | Callable[[dict[str, Any]], str],
    *,
    consequence: str,
    risk: Risk = "high",
    irreversible: bool = True,
    timeout: int = 120,
    tool: str | None = None,
) -> Callable[[F], F]:
    """A function that runs only after a person consented to exactly these arguments.

    It runs with a copy of the arguments that was made before the person was asked. If the arguments changed meanwhile,
    it does not run. Without consent it raises `NotAccepted`. It belongs to the session whose `with` block it is called
    in.
    """
    needs = NeedsConsent(action, consequence, risk, irreversible, timeout)
    return lambda function: _wrap(function, tool or function.__name__, needs)


def tool(function: F) -> F:
    """A function whose beginning and end people hear, in the session whose `with` block it is called in."""
    return _wrap(function, function.__name__, None)


def _wrap(function: F, name: str, needs: NeedsConsent | None) -> F:
    signature = inspect.signature(function)

    def bound(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[inspect.BoundArguments, dict[str, Any]]:
        call = signature.bind(*args, **kwargs)
        call.apply_defaults()
        return call, {key: value for key, value in call.arguments.items() if key not in ("self", "cls")}

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            session = _session()
            if not isinstance(session, AsyncSession):
                raise WrongCall(f"{name} is async, and its session is not. Write: async with hub.session(...)")
            call, own = bound(args, kwargs)
            async with session.guard(name, own, needs) as running:
                call.arguments.update(running.args)
                return await function(*call.args, **call.kwargs)

        return cast(F, run_async)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        session = _session()
        if _is_in_loop() and needs is not None:
            raise WrongCall(f"{name} would stop the event loop while a person decides. Make it async.")
        call, own = bound(args, kwargs)
        with session.guard_blocking(name, own, needs) as running:
            call.arguments.update(running.args)
            return function(*call.args, **call.kwargs)

    return cast(F, run)


def _session() -> AskingSession:
    session = current_session()
    if session is None:
        raise WrongCall("There is no session here. Call this inside: with hub.session(...)")
    return session


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
