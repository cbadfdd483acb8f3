"""The same scene for every framework: the model says two sentences, calls a tool, hears of it, and says how it ended."""

from __future__ import annotations

import asyncio
import threading
import unittest
from typing import Any

import aaep

from ..support import PATIENCE, Person, RealHub, limit_time

TOKENS = ["I will del", "ete the folder. ", "One mo", "ment, please. "]
CLOSING = ["That was", " all."]
ARGS = {"path": "/build"}
NEEDS = {"delete_folder": aaep.NeedsConsent("Delete {path}.", "It is gone for good.")}
PROMPT = "Delete the build folder."


class Scene(unittest.TestCase):
    """Runs an agent of a framework with a real hub and a person. Each framework overrides `play`."""

    hub: RealHub
    person: Person
    tool_name = "delete_folder"
    denied: str | None = None
    """What the model is told where the framework has words of its own."""

    @classmethod
    def setUpClass(cls) -> None:
        if cls.__name__ == "Scene" or cls is Scene:
            raise unittest.SkipTest("The frameworks are the classes below.")
        cls.hub = RealHub()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.hub.close()

    def setUp(self) -> None:
        limit_time()
        self.ran: list[Any] = []
        self.told: list[str] = []
        self.fails = False
        self.refused: list[Any] = []
        self.person = self.hub.person()
        self.addCleanup(self.person.close)

    async def play(self, session: aaep.AsyncSession) -> None:
        """Runs the agent. What the tool was called with goes to `ran`, what the model was told to `told`."""
        raise NotImplementedError

    def delete(self, path: str) -> str:
        """The body of the tool."""
        self.ran.append({"path": path})
        if self.fails:
            raise OSError("the disk is on fire")
        return f"deleted {path}"

    def run_scene(self, accepts: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        """Plays it once. Gives what the person heard of it."""
        agent = self.hub.agent(f"tidy-{id(self):x}", accepts=accepts,
                               on_refused=lambda event, error: self.refused.append((event["type"], error.code)))
        self.addCleanup(agent.close)
        if accepts:
            self.assertTrue(agent.ready(PATIENCE))
        opening = agent.session("Tidies up.")

        async def run() -> None:
            async with opening as session:
                await self.play(session)

        try:
            asyncio.run(run())
        finally:
            self.assertTrue(agent.flush(PATIENCE))
            while True:
                news = self.person.news.get(timeout=PATIENCE)
                if getattr(news, "type", "").startswith("agent.session.") and not news.type.endswith("started"):
                    break
            self.assertEqual(self.refused, [])
        return self.person.heard

    def names(self, heard: list[dict[str, Any]]) -> list[str]:
        """The types of what was heard, without changes of state."""
        every = [str(event["type"]).split("agent.")[1] for event in heard]
        return [name for name in every if name != "state.changed"]

    def test_accepted_it_runs_once_with_what_was_consented_to(self) -> None:
        asked: list[Any] = []
        threading.Thread(target=lambda: asked.append(self.person.decides(True)), daemon=True).start()
        heard = self.run_scene()
        self.assertEqual(self.ran, [ARGS])
        self.assertIn("Delete /build.", asked[0].words)
        self.assertIn('{"path": "/build"}', asked[0].words)
        chunks = [event["chunk"] for event in heard if event.get("chunk")]
        self.assertEqual("".join(chunks), "".join(TOKENS + CLOSING))
        for chunk in chunks:
            self.assertTrue(chunk.rstrip().endswith("."), chunks)
        names = self.names(heard)
        self.assertEqual(names.count("tool.invoked"), 1)
        invoked = next(event for event in heard if event["type"].endswith("tool.invoked"))
        self.assertEqual(invoked["extensions"]["agentvoice"]["action_digest"], aaep.action_digest(self.tool_name, ARGS))
        completed = next(event for event in heard if event["type"].endswith("tool.completed"))
        self.assertEqual(completed["status"], "success")
        self.assertIn("deleted /build", " ".join(self.told))
        self.assertEqual(names[-1], "session.completed")

    def test_rejected_it_does_not_run_and_the_model_is_told(self) -> None:
        self.person.will(False)
        heard = self.run_scene()
        self.assertEqual(self.ran, [])
        self.assertIn(self.denied or "The person said no.", " ".join(self.told))
        self.assertNotIn("tool.invoked", self.names(heard))
        self.assertEqual(self.names(heard)[-1], "session.completed")

    def test_nobody_there_it_does_not_run(self) -> None:
        self.person.line.renegotiate({"supports_confirmation_reply": False})
        heard = self.run_scene()
        self.assertEqual(self.ran, [])
        self.assertIn(self.denied or "not done", " ".join(self.told))
        self.assertNotIn("tool.invoked", self.names(heard))

    def test_a_tool_that_fails_is_heard_to_fail(self) -> None:
        self.fails = True
        self.person.will(True)
        try:
            heard = self.run_scene()
        except OSError:
            # Some frameworks end the run, and then the session says why.
            heard = self.person.heard
            self.assertIn("session.errored", self.names(heard))
        self.assertEqual(self.ran, [ARGS])
        completed = [event for event in heard if event["type"].endswith("tool.completed")]
        self.assertEqual([event["status"] for event in completed], ["error"])
        self.assertIn("on fire", completed[0]["error_message"])

    def test_a_cancel_of_the_person_stops_it(self) -> None:
        def cancel() -> None:
            self.person.line.cancel(str(self.person.next_ask().event["session_id"]))

        threading.Thread(target=cancel, daemon=True).start()
        with self.assertRaises(aaep.CancelledByPerson):
            self.run_scene(accepts=("cancel",))
        self.assertEqual(self.ran, [])
        self.assertEqual(self.names(self.person.heard)[-1], "session.cancelled")
