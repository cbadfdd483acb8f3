"""A hub that is killed, away, slow, full, or lies."""

from __future__ import annotations

import json
import socket
import threading
import time
import unittest
from typing import Any

import aaep
from aaep import subscriber
from aaep.http import JsonObject

from .support import PATIENCE, RealHub, false_hub, limit_time, takes_all


def nowhere() -> str:
    """An address of this machine at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


class Trouble(unittest.TestCase):
    def setUp(self) -> None:
        limit_time()

    def test_a_question_survives_a_kill_of_the_hub_and_is_asked_once(self) -> None:
        with RealHub() as hub:
            person = hub.person()
            agent = hub.agent()
            results: list[aaep.Outcome] = []

            def ask() -> None:
                with agent.session("Asks.") as it:
                    results.append(it.confirm("Delete.", consequence="Gone.", irreversible=True))

            asking = threading.Thread(target=ask, daemon=True)
            asking.start()
            first = person.next_ask()
            hub.kill()
            hub.start()
            # The same question comes again by itself at most; the person answers the one that they know.
            while True:
                news = person.news.get(timeout=PATIENCE)
                if isinstance(news, subscriber.Reconnected):
                    break
            first.accept()
            asking.join(PATIENCE)
            self.assertEqual([bool(it) for it in results], [True])
            person.hears("session.completed")
            asked: list[Any] = []
            while not person.news.empty():
                asked += [it for it in [person.news.get()] if isinstance(it, subscriber.Ask)]
            self.assertEqual(asked, [])
            agent.close()
            person.close()

    def test_reports_wait_for_a_hub_that_is_away_and_come_in_order(self) -> None:
        with RealHub() as hub:
            agent = hub.agent()
            with agent.session("First.") as it:
                agent.flush()
                hub.kill()
                for at in range(300):
                    it.say(f"Sentence {at}. ")
                    it.progress(percent=at / 3)
                with it.tool("work", "Working."):
                    pass
                # The program goes on: nothing waited, and a question is a no.
                agent.asker._away_seconds = 0.2  # pyright: ignore[reportPrivateUsage]
                outcome = it.confirm("Delete.", consequence="Gone.", timeout=1)
                self.assertEqual((outcome.name, bool(outcome)), ("unreachable", False))
                with self.assertRaises(aaep.NoAnswer):
                    it.ask("Which?", timeout=1)
            self.assertGreater(agent.outbox.waiting, 300)
            hub.start()
            person = hub.person()
            self.assertTrue(agent.flush(PATIENCE))
            person.hears("session.completed")
            agent.close()
            person.close()
            found = stored(hub, it.id)
            text = "".join(event["chunk"] for event in found if "chunk" in event)
            self.assertEqual(text, "".join(f"Sentence {at}. " for at in range(300)))
            percents = [event["progress"]["percent"] for event in found if "percent" in event.get("progress", {})]
            self.assertEqual(percents, [at / 3 for at in range(300)])

    def test_a_bound_is_kept_what_ends_always_comes_and_the_gap_is_told(self) -> None:
        with RealHub() as hub:
            agent = hub.agent(max_waiting_events=20)
            with agent.session("First.") as it:
                agent.flush()
                hub.kill()
                tool = it.tool("work", "Working.").begin()
                for at in range(500):
                    it.progress(f"Step {at}.")
                self.assertLessEqual(agent.outbox.waiting, 20)
                self.assertGreater(agent.outbox.left_out, 400)
                with agent.session("No room for this one.") as silent:
                    silent.say("Nobody hears this.")
                    self.assertFalse(silent.confirm("Delete.", consequence="Gone."))
                tool.end()
                hub.start()
                agent.flush(PATIENCE)
                it.say("The hub is back.")
            self.assertTrue(agent.flush(PATIENCE))
            agent.close()
            found = stored(hub, it.id)
            names = [event["type"].split("agent.")[1] for event in found]
            self.assertEqual(names[-1], "session.completed")
            self.assertIn("tool.completed", names)
            self.assertTrue(any("reports are missing" in str(event.get("summary_normal")) for event in found))

    def test_a_slow_hub_keeps_no_agent_waiting(self) -> None:
        with RealHub() as hub:
            agent = hub.agent(away_seconds=0.5)
            with agent.session("First.") as it:
                agent.flush()
                hub.pause()
                for at in range(50):
                    it.say(f"Sentence {at}.")
                self.assertEqual(it.confirm("Delete.", consequence="Gone.", timeout=1).name, "unreachable")
                hub.go_on()
            self.assertTrue(agent.flush(PATIENCE))
            agent.close()
            self.assertEqual(sum(event["type"].endswith("output.streaming") for event in stored(hub, it.id)), 50)

    def test_a_full_hub_gets_the_session_later(self) -> None:
        with RealHub("[limits]\nsessions_per_principal = 1\n") as hub:
            refused: list[str] = []
            agent = hub.agent(on_refused=lambda _, error: refused.append(error.code))
            first = agent.session("First.")
            first.__enter__()
            agent.flush()
            with agent.session("Second.") as second:
                second.say("It waits.")
            self.assertFalse(agent.flush(0.5))
            first.__exit__(None, None, None)
            self.assertTrue(agent.flush(PATIENCE))
            agent.close()
            self.assertEqual(refused, [])
            self.assertEqual(len([it for it in stored(hub, second.id) if "chunk" in it]), 1)

    def test_a_hub_that_was_never_there_costs_nothing_but_the_words(self) -> None:
        agent = aaep.Hub("tidy", address=nowhere(), away_seconds=0.2)
        ran: list[str] = []

        @aaep.requires_consent("Delete {path}.", consequence="Gone.")
        def delete(path: str) -> None:
            ran.append(path)

        with agent.session("Works.") as it:
            it.say("Nobody hears this.")
            with self.assertRaises(aaep.NotAccepted):
                delete("/a")
        self.assertEqual(ran, [])
        self.assertFalse(agent.close(0.1))

    def test_a_tool_whose_announcement_is_lost_does_not_run(self) -> None:
        """The hub dies between the yes and the tool."""
        with RealHub() as hub:
            person = hub.person()
            agent = hub.agent()
            with agent.session("Deletes.") as it:
                person.will(True)
                consent = it.confirm("Delete.", consequence="Gone.", irreversible=True)
                self.assertTrue(consent)
                hub.kill()
                from aaep import tools

                before, tools.ANNOUNCE_SECONDS = tools.ANNOUNCE_SECONDS, 0.2
                try:
                    with self.assertRaises(aaep.NotAccepted), it.tool("delete", consent=consent):
                        raise AssertionError("it ran")
                finally:
                    tools.ANNOUNCE_SECONDS = before
            agent.close(0)
            person.close()


def stored(hub: RealHub, session: str) -> list[JsonObject]:
    """What the hub has of a session, in order."""
    import urllib.request

    found: list[JsonObject] = []
    order = 0
    while True:
        where = f"{hub.url}/aaep/v1/sessions/{session}/events?from_order={order}&limit=1000"
        request = urllib.request.Request(where, headers={"authorization": f"Bearer {hub.person_token}"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            page = json.load(answer)
        found += [it["event"] for it in page["events"] if not it["by_hub"]]
        if not page["events"]:
            return found
        order = page["next_from_order"]


class Liars(unittest.TestCase):
    """A hub that lies gets no consent out of the kit, and breaks nothing."""

    def setUp(self) -> None:
        limit_time()

    def ask(self, answer: Any, timeout: int = 1) -> aaep.Outcome:
        def serve(method: str, path: str, body: bytes) -> tuple[int, Any]:
            if path.startswith("/aaep/v1/asks"):
                return answer(method, path, json.loads(body) if body else {})
            return takes_all(method, path, body)

        with false_hub(serve) as url:
            agent = aaep.Hub("tidy", address=url, away_seconds=0.3)
            with agent.session("Asks.") as it:
                outcome = it.confirm("Delete.", consequence="Gone.", irreversible=True, timeout=timeout)
            agent.close(0.2)
            return outcome

    def test_a_question_that_the_hub_forgot_is_sent_again_and_is_the_same(self) -> None:
        ids: list[str] = []

        def answer(method: str, path: str, body: JsonObject) -> Any:
            if method == "GET":
                return 404, {"error": "no_such_ask", "message": "There is no such question."}
            if method == "POST":
                ids.append(body["event_id"])
            state = {"event_id": ids[-1], "reply_token": "rpl_1"}
            if len(ids) < 3:
                return 202, {**state, "status": "open"}
            return 200, {**state, "status": "settled", "outcome": "accept", "decided_by": "reply"}

        self.assertTrue(self.ask(answer, timeout=20))
        self.assertEqual((len(ids), len(set(ids))), (3, 1))

    def test_an_accept_that_is_not_quite_one_is_none(self) -> None:
        good = {"status": "settled", "reply_token": "rpl_1", "outcome": "accept", "decided_by": "reply"}
        changes: list[JsonObject] = [
            {"event_id": "evt_other"}, {"outcome": "ACCEPT"}, {"outcome": True}, {"outcome": None}, {"status": "accept"},
            {"decided_by": "timeout"}, {"decided_by": "no_listener"}, {"decided_by": "agent"}, {"decided_by": None},
            {"reply_token": 7}, {"outcome": ["accept"]},
        ]

        def answer(change: JsonObject) -> Any:
            return lambda method, path, body: (200, {**good, "event_id": body.get("event_id"), **change})

        self.assertTrue(self.ask(answer({})))
        for change in changes:
            self.assertFalse(self.ask(answer(change)), change)

    def test_garbage_is_no_consent(self) -> None:
        for status, body in [(200, b"accept"), (200, b"[" * 100_000), (200, b""), (500, b"{}"), (204, b""), (302, {}),
                             (200, [1]), (401, {"error": "x", "message": "No.\u001b[2J"}), (200, b"\xff")]:
            outcome = self.ask(lambda method, path, event, s=status, b=body: (s, b))
            self.assertFalse(outcome)
            self.assertTrue(outcome.message.isprintable())

    def test_a_body_without_end_is_not_read_to_the_end(self) -> None:
        self.assertFalse(self.ask(lambda method, path, body: (200, b"x" * (5 * 1024 * 1024))))

    def test_a_redirect_does_not_carry_the_token_elsewhere(self) -> None:
        with false_hub(lambda method, path, body: (307, {})) as url:
            agent = aaep.Hub("tidy", address=url, token="aaep_secret", away_seconds=0.2)
            with agent.session("Asks.") as it:
                self.assertFalse(it.confirm("Delete.", consequence="Gone.", timeout=1))
            agent.close(0.2)

    def test_answers_to_fewer_or_other_events_end_no_thread(self) -> None:
        with false_hub(lambda method, path, body: (200, b"{}\n{}\n{}\n[]\n")) as url:
            refused: list[Any] = []
            agent = aaep.Hub("tidy", address=url, on_refused=lambda event, error: refused.append(event))
            with agent.session("Works.") as it:
                it.say("Words.")
            self.assertTrue(agent.flush(PATIENCE))
            self.assertTrue(agent.outbox._thread and agent.outbox._thread.is_alive())  # pyright: ignore[reportPrivateUsage]
            agent.close()


class Listening(unittest.TestCase):
    """The subscriber half."""

    def setUp(self) -> None:
        limit_time()

    def test_terms_are_negotiated_and_renegotiated(self) -> None:
        with RealHub() as hub, hub.person(capabilities={"max_events_per_second": 5}) as person:
            granted = person.line.terms["honored_capabilities"]
            self.assertEqual(granted["max_events_per_second"], 5)
            granted = person.line.renegotiate({"max_events_per_second": 2})["honored_capabilities"]
            self.assertEqual(granted["max_events_per_second"], 2)
            with self.assertRaises(aaep.HubRefused):
                person.line.renegotiate({"max_events_per_second": 0})

    def test_a_kill_loses_and_repeats_nothing(self) -> None:
        with RealHub() as hub, hub.person() as person:
            agent = hub.agent()
            with agent.session("Talks.") as it:
                for at in range(20):
                    it.say(f"Sentence {at}.")
                    if at == 10:
                        agent.flush()
                        # A place to go on from; a subscription that received nothing yet has none after a kill.
                        person.hears("session.started")
                        hub.kill()
                        hub.start()
            person.hears("session.completed")
            chunks = [event["chunk"] for event in person.heard if "chunk" in event]
            self.assertEqual("".join(chunks), "".join(f"Sentence {at}." for at in range(20)))
            agent.close()

    def test_another_process_goes_on_where_one_left_off(self) -> None:
        with RealHub() as hub:
            agent = hub.agent()
            first = subscriber.connect("reader", address=hub.url, token=hub.person_token)
            news: Any = iter(first)
            with agent.session("Talks."):
                while not (isinstance(it := next(news), subscriber.Event) and it.type == "agent.session.started"):
                    pass
                point = (first.id, first.last_event_id)
                agent.flush()
            agent.flush()
            news.close()
            second = subscriber.connect("reader", address=hub.url, token=hub.person_token, resume=point)
            self.assertEqual(second.id, point[0])
            heard = [next(iter(second)) for _ in range(1)]
            self.assertEqual([it.type for it in heard if isinstance(it, subscriber.Event)], ["agent.state.changed"])
            second.close()
            first.close()
            agent.close()

    def test_an_answer_is_given_once_and_to_an_open_question(self) -> None:
        with RealHub() as hub, hub.person() as person:
            agent = hub.agent()
            with agent.session("Asks.") as it:
                asking = threading.Thread(target=lambda: it.confirm("Delete.", consequence="Gone."), daemon=True)
                asking.start()
                ask = person.next_ask()
                for part in ("Delete.", "Gone.", "Risk: not stated.", "Without an answer: reject."):
                    self.assertIn(part, ask.words)
                with self.assertRaises(aaep.WrongCall):
                    ask.answer("accept")
                ask.reject()
                for again in (ask.accept, ask.reject):
                    with self.assertRaises(subscriber.AskClosed):
                        again()
                asking.join(PATIENCE)
            agent.close()

    def test_a_stranger_is_turned_away(self) -> None:
        with RealHub() as hub:
            with self.assertRaises(aaep.HubRefused):
                subscriber.connect("reader", address=hub.url, token="aaep_wrong")
            with self.assertRaises(aaep.WrongCall):
                subscriber.connect(" ", address=hub.url)

    def test_after_close_nothing_comes(self) -> None:
        with RealHub() as hub:
            person = hub.person()
            person.close()
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline:
                if isinstance(person.news.get(timeout=PATIENCE), subscriber.Ended):
                    return
            raise AssertionError("it did not end")


if __name__ == "__main__":
    unittest.main()
