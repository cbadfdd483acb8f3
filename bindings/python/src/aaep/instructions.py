"""What people tell the agent: begin something, stop, go on in another way. Never consent."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import quote

from .address import HubAddress
from .errors import HubAway, WrongCall
from .http import HubConnection, JsonObject

log = logging.getLogger("aaep")

Accepts = Literal["prompt", "cancel", "steer"]
"""What an agent lets people tell it."""

_HOLD_SECONDS = 25
_MOST_WAITING = 1024


@dataclass(frozen=True)
class Prompt:
    """Begin something. Its session is `hub.session(..., prompt=this)`."""

    text: str
    session_id: str


@dataclass(frozen=True)
class Cancel:
    """Stop what is done in a session."""

    session_id: str


@dataclass(frozen=True)
class Steer:
    """Go on in another way."""

    text: str
    session_id: str


Instruction = Prompt | Cancel | Steer
"""Something that a person told the agent."""


def read_accepts(accepts: Iterable[str]) -> list[Accepts]:
    """What the agent accepts, each once."""
    stated = [accepts] if isinstance(accepts, str) else list(accepts)
    for it in stated:
        if it not in ("prompt", "cancel", "steer"):
            raise WrongCall(f"accepts has {it!r}. Use any of: 'prompt', 'cancel', 'steer'.")
    return cast("list[Accepts]", list(dict.fromkeys(stated)))


def _read(body: JsonObject) -> Instruction | None:
    session, text = body.get("session_id"), body.get("text")
    if not isinstance(session, str):
        return None
    name = str(body.get("type"))
    if name == "agentvoice:session.cancel":
        return Cancel(session)
    if not isinstance(text, str):
        return None
    if name == "agentvoice:agent.prompt":
        return Prompt(text, session)
    return Steer(text, session) if name == "agentvoice:session.steer" else None


class Inbox:
    """Reads what people tell the agent, in a thread of its own."""

    def __init__(
        self,
        address: HubAddress,
        token: str | None,
        agent_id: str,
        accepts: list[Accepts],
        on_instruction: Callable[[Instruction], None],
    ) -> None:
        self._connection = HubConnection(address, token)
        self._path = f"/aaep/v1/agents/{quote(agent_id, safe='')}"
        self._accepts = accepts
        self._on_instruction = on_instruction
        self._waiting: queue.Queue[Instruction | None] = queue.Queue(_MOST_WAITING)
        self._stop = threading.Event()
        self._is_known = threading.Event()
        threading.Thread(target=self._run, name="aaep-inbox", daemon=True).start()

    def wait_until_known(self, seconds: float) -> bool:
        """Waits until the hub knows what the agent accepts. Whether it does."""
        return self._is_known.wait(seconds)

    def next(self) -> Instruction | None:
        """The next instruction; nothing when the hub was closed."""
        return self._waiting.get()

    def close(self) -> None:
        """Ends the thread, and all loops over the instructions."""
        self._stop.set()
        self._put(None)

    def _run(self) -> None:
        pause = 0.2
        while not self._stop.is_set():
            try:
                self._read_all()
                pause = 0.2
            except HubAway as error:
                log.debug("The inbox cannot be read: %s", error)
            except Exception:  # The thread must outlive whatever comes.
                log.exception("Reading the inbox failed.")
            self._stop.wait(pause)
            pause = min(pause * 2, 5.0)

    def _read_all(self) -> None:
        hello = b'{"accepts":[' + ",".join(f'"{it}"' for it in self._accepts).encode() + b"]}"
        answer = self._connection.call("PUT", self._path, hello)
        if answer.status != 204:
            log.warning("The hub does not let people tell this agent anything. %s", answer.refusal())
            self._stop.wait(answer.retry_after or 5.0)
            return
        taken, last = 0, 0
        self._is_known.set()
        while not self._stop.is_set():
            path = f"{self._path}/inbox?after={taken}&wait_seconds={_HOLD_SECONDS}"
            answer = self._connection.call("GET", path, timeout=_HOLD_SECONDS + 10.0)
            if answer.status != 200:
                return
            found: object = answer.json().get("instructions")
            for body in cast("list[JsonObject]", found) if isinstance(found, list) else []:
                number: Any = body.get("number")
                if not isinstance(number, int) or number <= last:
                    continue
                taken = last = number
                instruction = _read(body)
                if instruction is not None:
                    self._on_instruction(instruction)
                    self._put(instruction)

    def _put(self, instruction: Instruction | None) -> None:
        while True:
            try:
                self._waiting.put_nowait(instruction)
                return
            except queue.Full:
                # An agent that never looks must not fill the memory.
                self._waiting.get_nowait()
