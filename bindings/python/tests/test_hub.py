"""Agents with a real hub and a person."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import unittest
from typing import Any

import aaep
from aaep import subscriber

from .support import PATIENCE, Person, RealHub, limit_time


class WithHub(unittest.TestCase):
    hub: RealHub
    config = ""

    @classmethod
    def setUpClass(cls) -> None:
        cls.hub = RealHub(cls.config)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.hub.close()

    def setUp(self) -> None:
        limit_time()
        self.person = self.hub.person()
        self.addCleanup(self.person.close)
        self.refused: list[tuple[dict[str, Any], aaep.HubRefused]] = []

    def agent(self, name: str | None = None, **more: Any) -> aaep.Hub:
        more.setdefault("on_refused", lambda event, error: self.refused.append((event, error)))
        agent = self.hub.agent(name or f"agent-{id(self):x}", **more)
        self.addCleanup(agent.close)
        return agent

    def tearDown(self) -> None:
        self.assertEqual(self.refused, [])


def words(person: Person, session: str) -> list[str]:
    """What the person heard of a session, in a few words."""
    found: list[str] = []
    for event in person.heard:
        if event["session_id"] == session:
            found.append(str(event["type"]).split("agent.")[1])
    return found


class Reports(WithHub):
    def test_a_session_is_heard_in_order_and_in_sentences(self) -> None:
        with self.agent(name=None, project="work/shop", language="en-GB").session("Looks for photos.") as it:
            tokens = ["I fou", "nd 240", " photos. Sh", "all I", " go on? ", "Well"]
            self.assertEqual(list(it.stream(tokens)), tokens)
            with it.tool("search", "Searching.", args={"year": 2019}) as tool:
                tool.done("Found 240.")
            it.progress("Half is done.", percent=50)
            with self.assertRaises(OSError), it.tool("copy", "Copying."):
                raise OSError("the disk is full")
            it.say("The end.")
        end = self.person.hears("session.completed")
        self.assertEqual(end["summary_normal"], "Done.")
        chunks = [event["chunk"] for event in self.person.heard if "chunk" in event]
        self.assertEqual(chunks, ["I found 240 photos. ", "Shall I go on? ", "Well", "The end."])
        self.assertEqual(
            words(self.person, it.id),
            ["session.started", "state.changed", "state.changed", *["output.streaming"] * 3, "state.changed",
             "tool.invoked", "tool.completed", "state.changed", "progress.updated", "state.changed",
             "tool.invoked", "tool.completed", "state.changed", "state.changed", "output.streaming",
             "session.completed"],
        )
        failed = [event for event in self.person.heard if event.get("status") == "error"]
        self.assertEqual(failed[0]["error_message"], "the disk is full")
        started = self.person.heard[0]
        self.assertEqual(started["extensions"]["agentvoice"]["project"], "work/shop")
        self.assertEqual(started["localization_hints"]["primary_language"], "en-GB")

    def test_what_leaves_the_block_is_how_the_session_ends(self) -> None:
        agent = self.agent()
        with self.assertRaises(ZeroDivisionError), agent.session("Divides.") as it:
            with it.output() as output:
                output.write("Half a sen")
            it.tool("left", "Left open.").begin()
            raise ZeroDivisionError("division by zero")
        self.assertIn("division by zero", self.person.hears("session.errored")["summary_normal"])
        left = [event for event in self.person.heard if event["type"].endswith("tool.completed")]
        self.assertEqual([event["error_message"] for event in left], ["The session ended before it was done."])
        with self.assertRaises(KeyboardInterrupt), agent.session("Is stopped."):
            raise KeyboardInterrupt
        self.assertEqual(self.person.hears("session.cancelled")["cancelled_by"], "producer")

    def test_a_long_text_and_a_big_one_arrive_whole(self) -> None:
        text = "".join(f"This is sentence {at}. " for at in range(400)) + "x" * 40_000
        with self.agent().session("Writes.") as it:
            it.say(text)
        self.person.hears("session.completed")
        self.assertEqual("".join(event["chunk"] for event in self.person.heard if "chunk" in event), text)

    def test_tools_at_the_same_time_each_end_and_the_state_follows_the_last(self) -> None:
        with self.agent().session("Works.") as it:
            first, second = it.tool("first").begin(), it.tool("second").begin()
            first.end()
            second.end()
        self.person.hears("session.completed")
        states = [event["to_state"] for event in self.person.heard if event["type"].endswith("state.changed")]
        self.assertEqual(states, ["thinking", "calling_tool", "thinking"])

    def test_a_session_that_ends_while_another_thread_writes_does_not_hang(self) -> None:
        for _ in range(30):
            with self.agent().session("Writes.") as it:
                output = it.output()

                def write() -> None:
                    with contextlib.suppress(aaep.WrongCall):
                        while True:
                            output.write("A sentence. ")

                writer = threading.Thread(target=write, daemon=True)
                writer.start()
            writer.join(PATIENCE)
            self.assertFalse(writer.is_alive())

    def test_the_local_socket_is_found_and_works(self) -> None:
        agent = aaep.Hub("by-socket", address=f"unix:{self.hub.socket}")
        with agent.session("Comes by the socket."):
            pass
        self.assertTrue(agent.flush())
        self.person.hears("session.completed")
        agent.close()


class Asking(WithHub):
    def test_only_an_accept_is_consent(self) -> None:
        with self.agent().session("Asks.") as it:
            for decision in (True, False):
                self.person.will(decision)
                self.assertEqual(bool(it.confirm("Delete.", consequence="Gone.", irreversible=True)), decision)
            silent = it.confirm("Delete.", consequence="Gone.", timeout=1)
            self.assertEqual((bool(silent), silent.decided_by), (False, "timeout"))
            harmless = it.confirm("Tidy.", consequence="None.", timeout=1, default="accept", risk="low", irreversible=False)
            self.assertTrue(harmless)

    def test_nobody_there_is_a_no(self) -> None:
        self.person.close()
        with self.agent().session("Asks.") as it:
            outcome = it.confirm("Delete.", consequence="Gone.", irreversible=True)
            self.assertEqual((outcome.name, outcome.decided_by), ("reject", "no_listener"))

    def test_questions_have_answers_of_their_type(self) -> None:
        def answer(value: Any) -> None:
            threading.Thread(target=lambda: self.person.next_ask().answer(value), daemon=True).start()

        with self.agent().session("Asks.") as it:
            answer("a name")
            self.assertEqual(it.ask("Your name?"), "a name")
            answer(False)
            self.assertIs(it.ask("Go on?", type="yes_no"), False)
            answer(2.5)
            self.assertEqual(it.ask("How much?", type="number"), 2.5)
            answer("2019")
            self.assertEqual(it.ask("Which year?", choices={"2018": "The first", "2019": "The second"}), "2019")
            with self.assertRaises(aaep.NoAnswer) as caught:
                it.ask("Anybody?", timeout=1)
            self.assertEqual(caught.exception.outcome.name, "unanswered")
            self.person.next_ask()

            def fill() -> None:
                self.person.next_ask().answer("Ola")
                self.person.next_ask().answer("red")

            threading.Thread(target=fill, daemon=True).start()
            form = {"name": aaep.Field("Your name?"), "colour": aaep.Field("Which colour?", choices=["red", "blue"])}
            self.assertEqual(it.form(form), {"name": "Ola", "colour": "red"})

    def test_consent_is_for_exactly_these_arguments_and_for_once(self) -> None:
        ran: list[Any] = []

        @aaep.requires_consent("Delete {paths}.", consequence="They are gone.")
        def delete(paths: list[str], force: bool = False) -> str:
            ran.append((paths, force))
            return "deleted"

        with self.agent().session("Deletes.") as it:
            self.person.will(True)
            self.assertEqual(delete(["/a"]), "deleted")
            self.assertEqual(ran, [(["/a"], False)])
            told = self.person.hears("tool.invoked")
            self.assertTrue(told["irreversible"])
            self.assertEqual(
                told["extensions"]["agentvoice"]["action_digest"],
                aaep.action_digest("delete", {"paths": ["/a"], "force": False}),
            )
            self.person.will(False)
            with self.assertRaises(aaep.NotAccepted):
                delete(["/b"])
            self.assertEqual(len(ran), 1)

            paths = ["/c"]

            def change_and_accept() -> None:
                ask = self.person.next_ask()
                paths.append("/everything")
                ask.accept()

            threading.Thread(target=change_and_accept, daemon=True).start()
            with self.assertRaises(aaep.ArgumentsChanged):
                delete(paths)
            self.assertEqual(len(ran), 1)

            self.person.will(True)
            consent = it.confirm("Move.", consequence="It is elsewhere.", tool="move", args={"n": 1}, irreversible=True)
            with self.assertRaises(aaep.ArgumentsChanged):
                it.tool("move", args={"n": 2}, consent=consent)
            with self.assertRaises(aaep.WrongCall):
                it.tool("copy", args={"n": 1}, consent=consent)
            with it.tool("move", args={"n": 1}, consent=consent) as tool:
                self.assertEqual(tool.args, {"n": 1})
            with self.assertRaises(aaep.NotAccepted), it.tool("move", args={"n": 1}, consent=consent):
                ran.append("twice")
            with self.agent().session("Another.") as other, self.assertRaises(aaep.WrongCall):
                other.tool("move", args={"n": 1}, consent=consent)
        self.assertEqual(len(ran), 1)

    def test_what_runs_is_a_copy_that_nobody_else_can_change(self) -> None:
        paths = ["/a"]
        needs = aaep.NeedsConsent("Delete {paths}.", "They are gone.")
        with self.agent().session("Deletes.") as it:
            self.person.will(True)
            with it.guard("delete", {"paths": paths}, needs) as tool:
                paths.append("/everything")
                self.assertEqual(tool.args, {"paths": ["/a"]})

    def test_a_consent_that_the_hub_does_not_see_covers_nothing(self) -> None:
        """A forged outcome passes the checks of the kit, and the hub refuses the tool before it runs."""
        refused: list[str] = []
        agent = self.agent(on_refused=lambda _event, error: refused.append(error.code))
        with agent.session("Forges.") as it:
            forged = aaep.Outcome("accept", "reply", "", it.id, irreversible=True)
            with self.assertRaises(aaep.NotAccepted), it.tool("wipe", consent=forged):
                raise AssertionError("it ran")
        self.assertEqual(refused, ["irreversible_without_accept"])

    def test_an_interrupted_agent_takes_its_question_back(self) -> None:
        async def run() -> None:
            async with self.agent().session("Asks.") as it:

                async def ask() -> aaep.Outcome:
                    return await it.confirm("Delete.", consequence="Gone.")

                waiting = asyncio.ensure_future(ask())
                await asyncio.to_thread(self.person.next_ask)
                waiting.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waiting
                ended = await asyncio.to_thread(self.wait_for_end)
                self.assertEqual(ended.outcome, "withdrawn")

        asyncio.run(run())

    def wait_for_end(self) -> subscriber.AskEnded:
        while True:
            news = self.person.news.get(timeout=PATIENCE)
            if isinstance(news, subscriber.AskEnded):
                return news

    def test_a_hub_that_is_closed_ends_every_question(self) -> None:
        agent = self.agent()
        found: list[aaep.Outcome] = []
        opening = agent.session("Asks.")
        it = opening.__enter__()
        asking = threading.Thread(target=lambda: found.append(it.confirm("Delete.", consequence="Gone.")), daemon=True)
        asking.start()
        self.person.next_ask()
        agent.close()
        asking.join(PATIENCE)
        self.assertEqual([outcome.name for outcome in found], ["unreachable"])

    def test_many_wait_at_once_and_each_gets_its_own_answer(self) -> None:
        """More than the threads that wait, so that they have to take turns."""
        count = 60

        def answer() -> None:
            for _ in range(count):
                ask = self.person.next_ask()
                accepted = int(str(ask.event["action"]).split()[1].rstrip(".")) % 2 == 0
                ask.accept() if accepted else ask.reject()

        async def one(agent: aaep.Hub, at: int) -> bool:
            async with agent.session(f"Number {at}.") as it:
                return bool(await it.confirm(f"Do {at}.", consequence="Done."))

        async def run() -> list[bool]:
            agent = self.agent()
            return await asyncio.gather(*(one(agent, at) for at in range(count)))

        threading.Thread(target=answer, daemon=True).start()
        self.assertEqual(asyncio.run(run()), [at % 2 == 0 for at in range(count)])


class Instructions(WithHub):
    def test_a_prompt_a_steer_and_a_cancel_arrive(self) -> None:
        agent = self.agent("parrot", accepts=["prompt", "cancel", "steer"])
        self.assertTrue(agent.ready(PATIENCE))
        session = self.person.line.prompt("Say hello.", "parrot")
        told = agent.instructions()
        prompt = next(told)
        self.assertEqual(prompt, aaep.Prompt("Say hello.", session))
        assert isinstance(prompt, aaep.Prompt)
        with self.assertRaises(aaep.CancelledByPerson), agent.session("Says it.", prompt=prompt) as it:
            self.assertEqual(it.id, session)
            agent.flush()
            self.person.line.steer(session, "Louder.")
            self.assertEqual(next(told), aaep.Steer("Louder.", session))
            self.assertEqual((it.steers(), it.steers()), (["Louder."], []))
            self.person.line.cancel(session)
            self.assertEqual(next(told), aaep.Cancel(session))
            it.say("This is not said any more.")
        self.assertEqual(self.person.hears("session.cancelled")["cancelled_by"], "user")

    def test_a_cancel_interrupts_an_async_session_and_its_question(self) -> None:
        agent = self.agent("worker", accepts=["cancel"])
        self.assertTrue(agent.ready(PATIENCE))

        async def run(with_ask: bool) -> None:
            async with agent.session("Works long.") as it:
                await asyncio.to_thread(agent.flush)

                async def cancel() -> None:
                    if with_ask:
                        await asyncio.to_thread(self.person.next_ask)
                    await asyncio.to_thread(self.person.line.cancel, it.id)

                canceller = asyncio.ensure_future(cancel())
                if with_ask:
                    await it.confirm("Delete.", consequence="Gone.")
                else:
                    await asyncio.sleep(PATIENCE)
                await canceller
                raise AssertionError("it went on")

        async def outside(with_ask: bool) -> None:
            with self.assertRaises(aaep.CancelledByPerson):
                await run(with_ask)
            # The cancel is over, and does not hit what comes after.
            await asyncio.sleep(0.01)

        for with_ask in (False, True):
            asyncio.run(outside(with_ask))
            self.assertEqual(self.person.hears("session.cancelled")["cancelled_by"], "user")

    def test_a_block_that_swallows_the_cancel_raises_it_at_its_end(self) -> None:
        """Some frameworks turn every exception of a tool into words for the model, and go on."""
        agent = self.agent("swallower", accepts=["cancel"])
        self.assertTrue(agent.ready(PATIENCE))

        async def run() -> None:
            async with agent.session("Works long.") as it:
                threading.Thread(target=self.cancel_the_next_ask, daemon=True).start()
                try:
                    await it.confirm("Delete.", consequence="Gone.")
                except BaseException:
                    pass

        with self.assertRaises(aaep.CancelledByPerson):
            asyncio.run(run())
        with self.assertRaises(aaep.CancelledByPerson), agent.session("Works long.") as it:
            threading.Thread(target=self.cancel_the_next_ask, daemon=True).start()
            try:
                it.confirm("Delete.", consequence="Gone.")
            except aaep.CancelledByPerson:
                pass

    def cancel_the_next_ask(self) -> None:
        self.person.line.cancel(str(self.person.next_ask().event["session_id"]))

    def test_an_agent_that_accepts_nothing_says_so(self) -> None:
        with self.assertRaises(aaep.WrongCall):
            next(self.agent().instructions())


class Many(WithHub):
    config = (
        "[limits]\nsessions_per_principal = 1100\nasks_per_principal = 1100\npublishes_per_second = 20000\n"
        "publish_burst = 4096\n"
    )

    def test_a_thousand_sessions_at_once_lose_nothing_and_keep_their_order(self) -> None:
        count, each = 1000, 5

        async def one(agent: aaep.Hub, at: int) -> None:
            async with agent.session(f"Session {at}.") as it:
                for step in range(each):
                    it.say(f"Step {step}.")
                    await asyncio.sleep(0)

        async def run() -> None:
            agent = self.agent("crowd", max_waiting_events=50_000)
            await asyncio.gather(*(one(agent, at) for at in range(count)))
            self.assertTrue(await asyncio.to_thread(agent.flush, 120))
            self.assertEqual(agent.outbox.left_out, 0)

        asyncio.run(run())
        ended = 0
        while ended < count:
            self.person.hears("session.completed")
            ended += 1
        said: dict[str, list[str]] = {}
        for event in self.person.heard:
            if "chunk" in event:
                said.setdefault(event["session_id"], []).append(event["chunk"])
        self.assertEqual(len(said), count)
        for chunks in said.values():
            self.assertEqual("".join(chunks), "".join(f"Step {step}." for step in range(each)))


if __name__ == "__main__":
    assert os.environ.get("AAEP"), "AAEP must name the program"
    unittest.main()
