"""Asks people and waits for the outcome, also while the hub restarts.

The same event with the same id is the same question, so that nobody is asked twice. Anything that is not a settled
outcome of exactly this question is not an outcome. Whatever goes wrong, the answer is no.
"""

from __future__ import annotations

import heapq
import itertools
import json
import logging
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from urllib.parse import quote

from .address import HubAddress
from .errors import HubAway
from .http import HubAnswer, HubConnection, JsonObject
from .outbox import Outbox

log = logging.getLogger("aaep")

AWAY_SECONDS = 10.0
"""How long a question waits for a hub that has not taken it yet."""
GRACE_SECONDS = 5.0
"""How long after the end of its time a question still waits for a hub that has gone silent."""
MAX_WORKERS = 16
_HELD = MAX_WORKERS - 4
"""How many questions the hub may hold a connection for; the others are looked at in turn."""
_HOLD_SECONDS = 25
_PASSING_STATUS = frozenset({404, 408, 425, 429, 500, 502, 503, 504})
_OUTCOMES = frozenset({"accept", "reject", "answered", "unanswered", "withdrawn"})


@dataclass
class Settlement:
    """How a question ended, as the hub reports it; or why there is no report."""

    name: str
    decided_by: str
    response: object = None
    message: str = ""


@dataclass
class PendingAsk:
    """A question that is under way."""

    event: JsonObject
    session: str
    mark: int
    give_up: float
    longest: float
    result: Future[Settlement] = field(default_factory=Future[Settlement])
    token: str | None = None
    has_come: bool = False
    must_ask: bool = True
    pause: float = 0.002
    is_withdrawn: bool = False
    is_held: bool = False

    def settle(self, settlement: Settlement) -> None:
        """Ends it, unless it has ended."""
        try:
            self.result.set_result(settlement)
        except Exception as error:  # Already settled; the first outcome counts.
            log.debug("A question was settled twice: %s", error)


class Asker:
    """Waits for the outcomes of all questions of a hub, with few threads and connections."""

    def __init__(
        self, address: HubAddress, token: str | None, outbox: Outbox, away_seconds: float = AWAY_SECONDS
    ) -> None:
        self._address = address
        self._token = token
        self._outbox = outbox
        self._away_seconds = away_seconds
        self._lock = threading.Condition()
        self._queue: list[tuple[float, int, PendingAsk]] = []
        self._order = itertools.count()
        self._asked: dict[int, PendingAsk] = {}
        self._open = 0
        self._held = 0
        self._idle = 0
        self._workers = 0
        self._is_closed = False

    def ask(self, event: JsonObject, session: str, timeout: float) -> PendingAsk:
        """Asks. The result comes after `timeout`, `AWAY_SECONDS` and `GRACE_SECONDS` together at the latest."""
        now = time.monotonic()
        longest = now + self._away_seconds + timeout + GRACE_SECONDS
        ask = PendingAsk(event, session, self._outbox.mark(session), now + self._away_seconds, longest)
        with self._lock:
            if self._is_closed:
                ask.settle(Settlement("unreachable", "kit"))
                return ask
            self._open += 1
            self._asked[id(ask)] = ask
            ask.result.add_done_callback(lambda _: self._asked.pop(id(ask), None))
            self._push(ask, now)
        return ask

    def withdraw(self, ask: PendingAsk) -> None:
        """Takes a question back. It ends without consent at once, whatever the hub says later."""
        ask.is_withdrawn = True
        ask.settle(Settlement("withdrawn", "withdrawn"))
        with self._lock:
            # The hub may hold the worker of this question for long, so that another one tells the hub.
            if not self._is_closed and ask.token is not None and ask.is_held:
                self._open += 1
                self._push(_Withdrawal(ask), time.monotonic())

    def close(self) -> None:
        """Ends the threads. What is still asked ends without consent."""
        with self._lock:
            self._is_closed = True
            asked = list(self._asked.values())
            self._lock.notify_all()
        for ask in asked:
            ask.settle(Settlement("unreachable", "kit"))

    def _push(self, ask: PendingAsk, at: float) -> None:
        heapq.heappush(self._queue, (at, next(self._order), ask))
        if not self._idle and self._workers < MAX_WORKERS:
            self._workers += 1
            threading.Thread(target=self._work, name=f"aaep-ask-{self._workers}", daemon=True).start()
        self._lock.notify()

    def _work(self) -> None:
        connection = HubConnection(self._address, self._token)
        while True:
            with self._lock:
                while not self._is_closed:
                    left = self._queue[0][0] - time.monotonic() if self._queue else 30.0
                    if left <= 0:
                        break
                    self._idle += 1
                    was_called = self._lock.wait(left)
                    self._idle -= 1
                    if not was_called and not self._queue:
                        break
                if self._is_closed or not self._queue:
                    self._workers -= 1
                    connection.close()
                    return
                _, _, ask = heapq.heappop(self._queue)
                ask.is_held = self._held < _HELD
                self._held += ask.is_held
            try:
                pause = self._turn(connection, ask)
            except Exception:  # A thread that ends would leave questions without an answer.
                log.exception("Waiting for an answer failed.")
                ask.settle(Settlement("unreachable", "kit"))
                pause = None
            with self._lock:
                self._held -= ask.is_held
                ask.is_held = False
                if pause is None:
                    self._open -= 1
                else:
                    self._push(ask, time.monotonic() + pause)

    def _turn(self, connection: HubConnection, ask: PendingAsk) -> float | None:
        """Looks once. Gives how long to wait before the next look, or nothing if this was the last one."""
        now = time.monotonic()
        if ask.is_withdrawn:
            return self._withdraw(connection, ask, now)
        if now >= min(ask.give_up, ask.longest):
            ask.is_withdrawn = True
            ask.settle(Settlement("unreachable", "kit"))
            # Nobody should go on answering something that does not count any more.
            ask.longest = now + 60.0
            return 0.0 if ask.has_come else None
        if ask.must_ask and not self._outbox.is_sent(ask.session, ask.mark):
            ask.pause = min(ask.pause * 2, 0.05)
            return ask.pause
        hold = _HOLD_SECONDS if ask.is_held else 0
        left = min(ask.give_up, ask.longest) - now
        try:
            if ask.must_ask:
                # Short at first, so that the token is known soon and the question can be withdrawn.
                answer = connection.call(
                    "POST", "/aaep/v1/asks?wait_seconds=0", json.dumps(ask.event).encode(), timeout=max(left, 0.2)
                )
            else:
                hold = max(0, min(hold, int(left)))
                path = f"/aaep/v1/asks/{quote(ask.token or '', safe='')}?wait_seconds={hold}"
                answer = connection.call("GET", path, timeout=hold + 10.0)
        except HubAway as error:
            ask.has_come = ask.has_come or isinstance(error.__cause__, TimeoutError)
            return self._again(ask)
        return self._read(ask, answer)

    def _again(self, ask: PendingAsk) -> float:
        """After trouble the question is sent again: the hub may have lost it, and never asks it twice."""
        ask.must_ask = True
        ask.pause = min(max(ask.pause * 2, 0.1), 2.0)
        return ask.pause

    def _read(self, ask: PendingAsk, answer: HubAnswer) -> float | None:
        if answer.status in _PASSING_STATUS:
            return max(self._again(ask), answer.retry_after or 0.0)
        body = answer.json()
        if answer.status not in (200, 202):
            ask.settle(Settlement("refused", "kit", message=str(answer.refusal())))
            return None
        is_ours = body.get("event_id") == ask.event["event_id"] and isinstance(body.get("reply_token"), str)
        if not is_ours:
            ask.settle(Settlement("refused", "kit", message="The hub answered about another question."))
            return None
        ask.token, ask.has_come, ask.must_ask = body["reply_token"], True, False
        if body.get("status") == "settled":
            name = str(body.get("outcome"))
            decided_by = str(body.get("decided_by"))
            ask.settle(Settlement(name if name in _OUTCOMES else "refused", decided_by, body.get("response")))
            return None
        # From now on it is worth waiting for the hub until the time of the question is over.
        ask.give_up = ask.longest
        if ask.is_held:
            return 0.0
        return max(0.25, self._open / 200)

    def _withdraw(self, connection: HubConnection, ask: PendingAsk, now: float) -> float | None:
        if ask.token is None and ask.has_come and now < ask.longest:
            # The hub may have the question. To send it again tells its token.
            try:
                body = json.dumps(ask.event).encode()
                found = connection.call("POST", "/aaep/v1/asks?wait_seconds=0", body, timeout=5.0).json()
                ask.token = str(found["reply_token"]) if "reply_token" in found else None
            except HubAway:
                return self._again(ask)
        if ask.token is None or now >= ask.longest:
            return None
        try:
            answer = connection.call("DELETE", f"/aaep/v1/asks/{quote(ask.token, safe='')}", timeout=5.0)
        except HubAway:
            return self._again(ask)
        return self._again(ask) if answer.status in _PASSING_STATUS - {404} else None


class _Withdrawal(PendingAsk):
    """Tells the hub that a question is taken back, while another worker still waits for it."""

    def __init__(self, ask: PendingAsk) -> None:
        super().__init__(ask.event, ask.session, 0, 0.0, time.monotonic() + 60.0, token=ask.token)
        self.is_withdrawn = True
