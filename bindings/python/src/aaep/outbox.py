"""Sends what the agent reports, in order, without ever making the agent wait.

A thread of its own sends the events of all sessions, many in one request. While the hub is away they wait here, within
a bound. When the bound is reached, what would begin something new, or would only be nice to know, is left out and
counted; what ends something that was sent always gets in, so that a session is never left open.
"""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from .address import HubAddress
from .errors import HubAway, HubRefused
from .http import HubConnection, JsonObject, refusal_of
from .output import MAX_PIECE

log = logging.getLogger("aaep")

MAX_WAITING_EVENTS = 4096
"""How many reports wait for the hub at most."""
MAX_WAITING_BYTES = 8 * 1024 * 1024
"""How many bytes they have at most."""
_EVENTS_AT_ONCE = 128
_BYTES_AT_ONCE = 512 * 1024
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_REST_SECONDS = 0.05
"""What comes so soon after a request waits for the next one, unless somebody waits for it."""
# The hub may take these later; everything else that it refuses stays refused.
_PASSING = frozenset({"too_many", "over_share", "rate_limit", "too_fast"})
_PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass
class _Waiting:
    number: int
    event: JsonObject
    line: bytes
    answer: Future[HubRefused | None] | None = None

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.line)


@dataclass
class _Lane:
    """What waits of one session."""

    waiting: deque[_Waiting] = field(default_factory=deque[_Waiting])
    flying: int = 0
    """The number of the first event that is on its way, or 0."""
    marked: int = 0
    """Nothing is joined to an event up to this number, because somebody waits for it."""
    left_out: int = 0
    is_ended: bool = False
    not_before: float = 0.0
    pause: float = _FIRST_PAUSE
    is_urgent: bool = False


class Outbox:
    """The reports that wait for the hub."""

    def __init__(
        self,
        address: HubAddress,
        token: str | None,
        on_refused: Callable[[JsonObject, HubRefused], None],
        max_events: int = MAX_WAITING_EVENTS,
        max_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self._connection = HubConnection(address, token)
        self._on_refused = on_refused
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._lanes: OrderedDict[str, _Lane] = OrderedDict()
        lock = threading.RLock()
        self._lock = threading.Condition(lock)
        self._hurry = threading.Condition(lock)
        self._is_hurried = False
        self._events = 0
        self._bytes = 0
        self._number = 0
        self._left_out = 0
        self._in_flight = 0
        self._is_closed = False
        self._is_away = False
        self._thread: threading.Thread | None = None

    @property
    def left_out(self) -> int:
        """How many reports were left out because too many waited."""
        return self._left_out

    @property
    def waiting(self) -> int:
        """How many reports wait."""
        return self._events

    def add(
        self,
        session: str,
        event: JsonObject,
        always: bool = False,
        answer: Future[HubRefused | None] | None = None,
        must_hurry: bool = False,
    ) -> bool:
        """Takes an event, unless there is no room. Events that end something always have room.

        `answer` gets what the hub said: nothing if it took the event.
        """
        line = _line(event)
        with self._lock:
            lane = self._lanes.setdefault(session, _Lane())
            is_full = self._events >= self._max_events or self._bytes + len(line) > self._max_bytes
            if self._is_closed or (is_full and not always):
                self._left_out += 1
                lane.left_out += 1
                if self._left_out == 1:
                    log.warning("More reports wait for the hub than fit. From now on some are left out.")
                return False
            if lane.left_out and not is_full and event["type"] != "aaep:agent.session.started":
                self._tell_left_out(lane, event)
            self._put(lane, _Waiting(0, event, line, answer))
            self._start()
            self._lock.notify_all()
            if must_hurry:
                self._hurry_up()
            return True

    def _tell_left_out(self, lane: _Lane, event: JsonObject) -> None:
        """People hear that something is missing, in its place."""
        words = f"{lane.left_out} reports are missing here, because the hub could not be reached."
        lane.left_out = 0
        told = {key: event[key] for key in ("producer", "session_id")}
        told |= {
            "type": "aaep:agent.progress.updated",
            "event_id": event["event_id"] + "gap",
            "progress": {"description": words},
            "summary_normal": words,
        }
        self._put(lane, _Waiting(0, told, _line(told)))

    def _put(self, lane: _Lane, item: _Waiting) -> None:
        last = lane.waiting[-1] if lane.waiting else None
        self._number += 1
        item.number = self._number
        self._bytes += item.size
        if last is not None and last.number > lane.marked and _joins(last.event, item.event):
            # Waiting pieces of one text become one piece, so that the hub catches up faster.
            joined = {**item.event, "event_id": last.event["event_id"]}
            joined["chunk"] = last.event["chunk"] + item.event["chunk"]
            self._bytes -= last.size + item.size
            last.number, last.event, last.line = item.number, joined, _line(joined)
            self._bytes += last.size
        else:
            lane.waiting.append(item)
            self._events += 1

    def mark(self, session: str) -> int:
        """A number that `is_sent` understands: everything of this session until now, which goes first from now on."""
        with self._lock:
            lane = self._lanes.get(session)
            if lane is not None:
                lane.is_urgent = True
                lane.marked = self._number
                self._hurry_up()
            return self._number

    def is_sent(self, session: str, mark: int) -> bool:
        """Whether the hub has answered to everything of this session up to the mark."""
        with self._lock:
            lane = self._lanes.get(session)
            if lane is None:
                return True
            is_waiting = bool(lane.waiting) and lane.waiting[0].number <= mark
            return not is_waiting and not 0 < lane.flying <= mark

    def forget(self, session: str) -> None:
        """Forgets a session that has ended, once everything of it is sent."""
        with self._lock:
            lane = self._lanes.get(session)
            if lane is not None:
                lane.is_ended = True
                self._drop_if_done(session, lane)

    def _drop_if_done(self, session: str, lane: _Lane) -> None:
        if lane.is_ended and not lane.waiting and not lane.flying:
            del self._lanes[session]

    def flush(self, seconds: float) -> bool:
        """Waits until everything is sent, but no longer than this. Whether it is."""
        until = time.monotonic() + seconds
        with self._lock:
            while self._events or self._in_flight:
                self._hurry_up()
                left = until - time.monotonic()
                if left <= 0:
                    return False
                self._lock.wait(left)
            return True

    def close(self, seconds: float) -> bool:
        """Sends what it can within this time, and takes nothing more. Whether everything was sent."""
        is_sent = self._thread is None or self.flush(seconds)
        with self._lock:
            self._is_closed = True
            self._hurry_up()
        return is_sent

    def _hurry_up(self) -> None:
        """Somebody waits for what is here. Needs the lock."""
        self._is_hurried = True
        self._hurry.notify_all()
        self._lock.notify_all()

    def _rest(self) -> None:
        with self._lock:
            self._hurry.wait_for(lambda: self._is_hurried, _REST_SECONDS)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="aaep-outbox", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            batch = self._next_batch()
            if batch is None:
                self._connection.close()
                return
            try:
                answers, wait = self._send([item.line for _, item in batch])
            except Exception:  # The thread must outlive whatever happens, or nothing is ever sent again.
                log.exception("Sending reports failed.")
                answers, wait = None, _LONGEST_PAUSE
            if answers is None:
                with self._lock:
                    self._put_back(batch)
                    self._land(batch)
                self._sleep(max(wait, pause * random.uniform(0.7, 1.0)))
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            pause = _FIRST_PAUSE
            self._settle(batch, answers)
            self._rest()

    def _sleep(self, seconds: float) -> None:
        with self._lock:
            if not self._is_closed:
                self._lock.wait_for(lambda: self._is_closed, seconds)

    def _next_batch(self) -> list[tuple[str, _Waiting]] | None:
        with self._lock:
            while not self._is_closed:
                now = time.monotonic()
                ready = [it for it in self._lanes.items() if it[1].waiting and it[1].not_before <= now]
                if ready:
                    break
                later = [lane.not_before - now for lane in self._lanes.values() if lane.waiting]
                self._lock.wait(min(later) if later else None)
            else:
                return None
            ready.sort(key=lambda it: not it[1].is_urgent)
            batch: list[tuple[str, _Waiting]] = []
            size = 0
            for session, lane in ready:
                while lane.waiting and len(batch) < _EVENTS_AT_ONCE:
                    if batch and size + lane.waiting[0].size > _BYTES_AT_ONCE:
                        break
                    item = lane.waiting.popleft()
                    lane.flying = lane.flying or item.number
                    size += item.size
                    batch.append((session, item))
                # The next batch begins with another session, so that none waits for all of another.
                self._lanes.move_to_end(session)
                if len(batch) >= _EVENTS_AT_ONCE:
                    break
            self._events -= len(batch)
            self._bytes -= size
            self._in_flight = len(batch)
            self._is_hurried = self._events > 0 and self._is_hurried
            return batch

    def _put_back(self, batch: list[tuple[str, _Waiting]]) -> None:
        """Takes back what was not sent, in front of what came since. Needs the lock."""
        for session, item in reversed(batch):
            self._lanes[session].waiting.appendleft(item)
            self._events += 1
            self._bytes += item.size

    def _land(self, batch: list[tuple[str, _Waiting]]) -> None:
        """Nothing of this batch is on its way any more. Needs the lock."""
        self._in_flight = 0
        for session in {session for session, _ in batch}:
            lane = self._lanes[session]
            lane.flying = 0
            lane.is_urgent = lane.is_urgent and bool(lane.waiting)
            self._drop_if_done(session, lane)
        self._lock.notify_all()

    def _send(self, lines: list[bytes]) -> tuple[list[JsonObject] | None, float]:
        """The answers to these events; or none, and how long to wait."""
        try:
            answer = self._connection.call("POST", "/aaep/v1/publish", b"".join(lines), "application/x-ndjson")
        except HubAway as error:
            if not self._is_away:
                log.warning("%s Reports wait here until it is back.", error)
            self._is_away = True
            return None, 0.0
        if self._is_away:
            log.warning("The hub is back.")
            self._is_away = False
        if answer.status in (200, 409):
            answers = answer.lines()
            if len(answers) == len(lines):
                return answers, 0.0
        elif answer.status in _PASSING_STATUS:
            return None, answer.retry_after or 0.0
        refused = answer.refusal()
        body = {"error": refused.code, "message": str(refused)}
        return [body] * len(lines), 0.0

    def _settle(self, batch: list[tuple[str, _Waiting]], answers: list[JsonObject]) -> None:
        refused: list[tuple[JsonObject, HubRefused]] = []
        again: list[tuple[str, _Waiting]] = []
        waiting_again: set[str] = set()
        for (session, item), answer in zip(batch, answers):
            code = answer.get("error")
            if code is None:
                _resolve(item.answer, None)
                continue
            # What follows a start that has to wait is refused only because of that.
            if code in _PASSING or (session in waiting_again and code == "not_started"):
                waiting_again.add(session)
                again.append((session, item))
                continue
            error = refusal_of(answer, 409)
            refused.append((item.event, error))
            _resolve(item.answer, error)
        with self._lock:
            self._put_back(again)
            for session in {session for session, _ in batch}:
                lane = self._lanes[session]
                if session in waiting_again:
                    lane.not_before = time.monotonic() + lane.pause
                    lane.pause = min(lane.pause * 2, _LONGEST_PAUSE)
                else:
                    lane.pause = _FIRST_PAUSE
            self._land(batch)
        for event, error in refused:
            self._on_refused(event, error)


def _line(event: JsonObject) -> bytes:
    return json.dumps(event, ensure_ascii=False).encode() + b"\n"


def _resolve(answer: Future[HubRefused | None] | None, error: HubRefused | None) -> None:
    # The agent may have stopped waiting.
    if answer is not None and answer.set_running_or_notify_cancel():
        answer.set_result(error)


def _joins(last: JsonObject, event: JsonObject) -> bool:
    """Whether two pieces are neighbours in one text."""
    return (
        event["type"] == "aaep:agent.output.streaming" == last["type"]
        and event["output_id"] == last["output_id"]
        and not last["complete"]
        and event.get("language") == last.get("language")
        and len(last["chunk"]) + len(event["chunk"]) <= MAX_PIECE
    )
