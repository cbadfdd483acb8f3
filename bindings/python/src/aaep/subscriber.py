"""The other side: assistive technology that hears what agents do, and lets people answer.

    from aaep import subscriber

    with subscriber.connect("my-reader") as hub:
        for news in hub:
            if isinstance(news, subscriber.Event):
                speak(news.words)
            elif isinstance(news, subscriber.Ask):
                speak(news.words)      # everything that the person needs to decide
                ...                    # later, when the person has decided: news.accept() or news.reject()

It reconnects when the line breaks, goes on after the last event, tells nothing twice, and never answers by itself.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal, cast
from urllib.parse import urlencode

from .address import find_hub
from .checks import check_text
from .errors import AaepError, HubAway, HubRefused, WrongCall
from .hub import CONTEXTS
from .http import HubConnection, JsonObject, json_object, read_token, refusal_of

SILENCE_SECONDS = 60.0
"""A line on which nothing comes for so long is broken; a hub sends something every 15 seconds."""
MAX_LINE_BYTES = 4 * 1024 * 1024
"""A longer line is not one of a hub."""
_MOST_REMEMBERED = 4096
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0

AskState = Literal["open", "unreached", "answered", "resolved", "unknown"]
"""`unreached`: the line is broken. `answered`: the answer was taken. `unknown`: it may be lost."""


class AskClosed(AaepError):
    """The question cannot be answered any more, or was answered."""


@dataclass(frozen=True)
class Event:
    """Something that an agent did."""

    event: JsonObject

    @property
    def type(self) -> str:
        """The type, such as `agent.tool.invoked`."""
        return str(self.event.get("type", "")).split(":", 1)[-1]

    @property
    def words(self) -> str:
        """What to tell the person."""
        for field in ("chunk", "summary_normal", "summary_terse"):
            if isinstance(self.event.get(field), str):
                return str(self.event[field])
        return ""


@dataclass(frozen=True)
class AskEnded:
    """A question is over. `outcome` says how, as far as that is known."""

    ask: Ask
    outcome: str
    decided_by: str


@dataclass(frozen=True)
class Gap:
    """Events are missing for good before the next one."""

    missed: int | None


@dataclass(frozen=True)
class Reconnecting:
    """The line broke. It is tried again by itself."""

    why: str


@dataclass(frozen=True)
class Reconnected:
    """The line is back."""

    resumed: bool
    """Whether it goes on after the last event. Otherwise the next events sum up what is going on."""


@dataclass(frozen=True)
class Ended:
    """The subscription is over, and nothing more comes."""

    why: str


class Ask:
    """A question of an agent to the person."""

    def __init__(self, subscriber: Subscriber, event: JsonObject) -> None:
        self.event = event
        self.token = str(event["reply_token"])
        self.is_confirmation = str(event["type"]).endswith("awaiting.confirmation")
        self._subscriber = subscriber
        self._state: AskState = "open"
        self._lock = threading.Lock()

    @property
    def state(self) -> AskState:
        """How the question stands."""
        if self._state == "open" and not self._subscriber.is_connected:
            return "unreached"
        return self._state

    @property
    def words(self) -> str:
        """Everything that the person needs to decide. Present it to its end before you take a yes."""
        it = self.event
        if not self.is_confirmation:
            labels = [str(choice.get("label")) for choice in it.get("choices", [])]
            parts = [str(it.get("question")), str(it.get("context", "")), "Choices: " + ", ".join(labels) if labels else ""]
            return " ".join(part for part in parts if part)
        own: JsonObject = it.get("extensions", {}).get("agentvoice", {})
        arguments: object = it.get("extra_context", {}).get("arguments")
        final = it.get("irreversible") is True or it.get("reversibility") == "irreversible"
        undo = "It cannot be undone." if final else f"Undo: {it.get('reversibility') or _undo(it)}."
        parts = [
            str(it.get("action")),
            str(it.get("consequence")),
            f"Risk: {it.get('risk_level', 'not stated')}.",
            undo,
            f"Tool: {own['tool']}." if "tool" in own else "",
            f"Arguments: {json.dumps(arguments, ensure_ascii=False)}." if arguments is not None else "",
            f"Without an answer: {it.get('default_decision')}.",
        ]
        return " ".join(part for part in parts if part)

    def accept(self) -> None:
        """The person consents."""
        self._decide("accept")

    def reject(self, why: str | None = None) -> None:
        """The person says no."""
        self._decide("reject", why)

    def answer(self, response: str | bool | float) -> None:
        """The person answers a question: text, yes or no, a number, or the value of a choice."""
        if self.is_confirmation:
            raise WrongCall("This is a confirmation. Use accept() or reject().")
        self._send({"type": "clarification.reply", "response": response})

    def presented(self) -> None:
        """The question was presented to its end."""
        self._subscriber.say({"type": "agentvoice:ask.presented", "reply_token": self.token})

    def extend(self, seconds: int) -> None:
        """The person needs this much more time."""
        self._subscriber.say({"type": "agentvoice:ask.extend", "reply_token": self.token, "by_seconds": seconds})

    def _decide(self, decision: str, why: str | None = None) -> None:
        if not self.is_confirmation:
            raise WrongCall("This is not a confirmation. Use answer().")
        reply: JsonObject = {"type": "confirmation.reply", "decision": decision}
        self._send({**reply, "decision_rationale": why} if why else reply)

    def _send(self, reply: JsonObject) -> None:
        with self._lock:
            if self._state != "open":
                raise AskClosed(f"The question is {self._state}, so this answer was not sent.")
            self._state = "answered"
        more = {"reply_token": self.token, "timestamp": _now(), "decided_by": "user"}
        try:
            self._subscriber.say({**reply, **more})
        except HubAway:
            # It may have come. It is not sent a second time; how the question ends says what counted.
            self._state = "unknown"
            raise
        except HubRefused:
            self._state = "open"
            raise

    def settle(self) -> None:
        """The hub says that the question is over."""
        self._state = "resolved"


def _undo(event: JsonObject) -> str:
    return "it can be undone" if event.get("irreversible") is False else "not stated"


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


News = Event | Ask | AskEnded | Gap | Reconnecting | Reconnected | Ended
"""What a subscriber gets."""


def connect(
    subscriber_id: str,
    *,
    name: str | None = None,
    capabilities: Mapping[str, Any] | None = None,
    address: str | None = None,
    token: str | None = None,
    resume: tuple[str, str | None] | None = None,
) -> Subscriber:
    """Subscribes. Without capabilities everything is wanted, and the person can answer.

    `resume` is a subscription of the same subscriber and the last event that it received, to go on there.
    """
    return Subscriber(subscriber_id, name, capabilities, address, token, resume)


class Subscriber:
    """A subscription. An iterator of news, for one thread; answers can be given from any thread."""

    def __init__(
        self,
        subscriber_id: str,
        name: str | None,
        capabilities: Mapping[str, Any] | None,
        address: str | None,
        token: str | None,
        resume: tuple[str, str | None] | None,
    ) -> None:
        check_text(subscriber_id, "subscriber_id", 256)
        wanted: JsonObject = {"supports_confirmation_reply": True, "supports_clarification_reply": True}
        self._capabilities = dict(capabilities) if capabilities is not None else wanted
        # The resolutions of questions are told in our extension.
        self._capabilities.setdefault("supported_extensions", [CONTEXTS[1]])
        self._request: JsonObject = {
            "type": "subscription.request",
            "aaep_version": "1.0.0",
            "subscriber_id": subscriber_id,
            **({"subscriber_name": name} if name else {}),
        }
        self._token = read_token(token)
        self._address = find_hub(address)
        self._replies = HubConnection(self._address, self._token)
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._asks: dict[str, Ask] = {}
        self._stream: http.client.HTTPConnection | None = None
        self._is_over = False
        self.is_connected = False
        """Whether the line stands."""
        self.last_event_id: str | None = None
        """The last event that was received."""
        self.id = ""
        """The id of the subscription."""
        self.terms: JsonObject = {}
        """What the hub grants, as it said in `subscription.accepted`."""
        if resume is not None:
            # The stream itself goes on there. If the hub does not know it any more, another one is negotiated.
            self.id, self.last_event_id = resume
        else:
            self._negotiate()

    def _negotiate(self) -> None:
        request = {**self._request, "capabilities": self._capabilities}
        with self._lock:
            answer = self._replies.call("POST", "/aaep/v1/subscriptions", json.dumps(request).encode())
        body = answer.json()
        if answer.status != 201 or not isinstance(body.get("subscription_id"), str):
            raise refusal_of(body, answer.status)
        self.terms, self.id, self.last_event_id = body, str(body["subscription_id"]), None

    def __iter__(self) -> Iterator[News]:
        pause, is_first, must_negotiate = _FIRST_PAUSE, True, False
        while not self._is_over:
            why = "The hub ended the stream."
            try:
                resumed = not must_negotiate
                if must_negotiate:
                    self._negotiate()
                must_negotiate = False
                for news in self._read():
                    if isinstance(news, Reconnected):
                        self.is_connected = True
                        pause = _FIRST_PAUSE
                        if not is_first:
                            yield Reconnected(resumed)
                        is_first = False
                        continue
                    yield news
                    if isinstance(news, Ended):
                        return
            except HubRefused as error:
                # The hub does not know the subscription any more, or cannot serve it now.
                if error.status not in (404, 408, 425, 429) and error.status < 500:
                    self._is_over = True
                    yield Ended(str(error))
                    return
                must_negotiate = error.status == 404
                why = str(error)
            except (HubAway, OSError, http.client.HTTPException, ValueError, AttributeError) as error:
                # An attribute is missing where another thread closed the stream.
                why = str(error) or type(error).__name__
            self.is_connected = False
            if self._is_over:
                break
            yield Reconnecting(why)
            time.sleep(pause * random.uniform(0.7, 1.0))
            pause = min(pause * 2, _LONGEST_PAUSE)
        yield Ended("You closed the subscription.")

    def _read(self) -> Iterator[News]:
        stream = self._replies.new_connection(SILENCE_SECONDS)
        self._stream = stream
        try:
            path = f"{self._address.prefix}/aaep/v1/events?{urlencode({'subscription_id': self.id})}"
            headers = {**self._replies.headers(), "accept": "text/event-stream"}
            if self.last_event_id is not None:
                headers["last-event-id"] = self.last_event_id
            stream.request("GET", path, headers=headers)
            answer = stream.getresponse()
            if answer.status != 200:
                raise refusal_of(json_object(answer.read(65536)), answer.status)
            yield Reconnected(True)
            data: list[str] = []
            size = 0
            while line := answer.readline(MAX_LINE_BYTES + 1):
                size += len(line)
                if size > MAX_LINE_BYTES:
                    raise HubAway("A message is larger than is taken.")
                text = line.decode("utf-8").rstrip("\r\n")
                if text.startswith("data:"):
                    data.append(text[5:].removeprefix(" "))
                elif not text:
                    message = json_object("\n".join(data))
                    data, size = [], 0
                    if message:
                        yield from self._take(message)
        finally:
            stream.close()

    def _take(self, message: JsonObject) -> Iterator[News]:
        name = str(message.get("type"))
        if name == "subscription.close":
            if message.get("reason") == "producer_shutdown" or message.get("reason_code") == "producer_shutdown":
                return
            self._is_over = True
            yield Ended(str(message.get("reason_message") or "The hub closed the subscription."))
            return
        event_id = message.get("event_id")
        if not isinstance(event_id, str):
            return
        self.last_event_id = event_id
        extensions = cast(JsonObject, message.get("extensions") or {})
        own = cast(JsonObject, extensions.get("agentvoice") or {})
        if "gap" in own:
            yield Gap(own["gap"].get("missed"))
        token = message.get("reply_token")
        if name.endswith(("awaiting.confirmation", "awaiting.clarification")) and isinstance(token, str):
            # After a new subscription the hub tells open questions again; those the program has already.
            if token not in self._asks:
                ask = self._asks[token] = Ask(self, message)
                yield ask
            return
        if event_id in self._seen:
            return
        self._seen[event_id] = None
        if len(self._seen) > _MOST_REMEMBERED:
            self._seen.popitem(last=False)
        resolution = cast(JsonObject, own.get("resolution") or {})
        ended = self._asks.pop(str(resolution.get("reply_token")), None)
        yield Event(message)
        if ended is not None:
            ended.settle()
            yield AskEnded(ended, str(resolution.get("outcome")), str(resolution.get("decided_by")))

    def say(self, message: JsonObject) -> JsonObject:
        """Sends a message of this subscription. Raises `HubRefused` if it does not count."""
        body = json.dumps({**message, "subscription_id": self.id}).encode()
        with self._lock:
            answer = self._replies.call("POST", "/aaep/v1/replies", body)
        found = answer.json()
        if answer.status not in (200, 202, 204) or found.get("type") == "subscription.rejected":
            raise refusal_of(found, answer.status)
        return found

    def renegotiate(self, capabilities: Mapping[str, Any]) -> JsonObject:
        """Asks for other terms. Only what is named changes. Gives what the hub grants now."""
        self.terms = self.say({"type": "subscription.renegotiate", "capabilities": dict(capabilities)})
        self._capabilities.update(capabilities)
        return self.terms

    def prompt(self, text: str, agent_id: str | None = None) -> str:
        """Tells an agent to begin something. Gives the id of its session."""
        more = {"agent_id": agent_id} if agent_id else {}
        return str(self.say({"type": "agentvoice:agent.prompt", "text": text, **more}).get("session_id"))

    def cancel(self, session_id: str) -> None:
        """Tells the agent of a session to stop."""
        self.say({"type": "agentvoice:session.cancel", "session_id": session_id})

    def steer(self, session_id: str, text: str) -> None:
        """Tells the agent of a session to go on in another way."""
        self.say({"type": "agentvoice:session.steer", "session_id": session_id, "text": text})

    def close(self) -> None:
        """Leaves. Questions that only this subscription could answer end without consent."""
        if self._is_over:
            return
        self._is_over = True
        try:
            self.say({"type": "subscription.close"})
        except AaepError:
            pass
        stream = self._stream
        if stream is not None and stream.sock is not None:
            try:
                # Wakes the thread that reads.
                stream.sock.shutdown(2)
            except OSError:
                pass
        with self._lock:
            self._replies.close()

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()


async def news_of(subscriber: Subscriber) -> AsyncIterator[News]:
    """The news of a subscriber, in an async program. If you do not take them, the hub is slowed down."""
    loop = asyncio.get_running_loop()
    source = iter(subscriber)
    with ThreadPoolExecutor(1, "aaep-subscriber") as pool:
        try:
            while (news := await loop.run_in_executor(pool, next, source, None)) is not None:
                yield news
        finally:
            subscriber.close()
