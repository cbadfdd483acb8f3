"""The programs on the page for agent authors that need nothing but the kit."""

from __future__ import annotations

import threading
import time

import aaep

from .page import PAGE, SUBSCRIBERS, programs, run, start
from .support import PATIENCE
from .test_hub import WithHub


class KitPrograms(WithHub):
    def test_the_page_has_the_programs_that_are_run(self) -> None:
        self.assertEqual(len(programs("## Python")), 3)
        # The others are run by tests/frameworks/test_page.py.
        self.assertEqual(PAGE.read_text("utf-8").count("\n```py\n"), 10)
        for block in PAGE.read_text("utf-8").split("\n```py\n")[1:]:
            self.assertLessEqual(len(block.split("\n```")[0].splitlines()), 24)

    def test_the_first_program_does_what_the_person_decides(self) -> None:
        for decision, words in ((True, "They may be deleted."), (False, "They stay.")):
            printed = run(self.hub, self.person, programs("## Python")[0], decision)
            self.assertIn("I found 240 photos.", printed)
            self.person.hears("output.streaming", lambda event, words=words: event["chunk"] == words)
            self.person.hears("session.completed")

    def test_the_async_program_asks_which_and_then_whether(self) -> None:
        for accepts, words in ((True, "The photos of 2019 are deleted."), (False, "The person said no.")):

            def answer(accepts: bool = accepts) -> None:
                self.person.next_ask().answer("2019")
                self.person.decides(accepts)

            threading.Thread(target=answer, daemon=True).start()
            child = start(self.hub, programs("## Python")[1])
            printed, _ = child.communicate(timeout=2 * PATIENCE)
            self.assertEqual(child.returncode, 0, printed)
            self.person.hears("output.streaming", lambda event, words=words: words in event["chunk"])

    def test_the_parrot_says_what_it_is_told(self) -> None:
        child = start(self.hub, programs("## Python")[2])
        self.addCleanup(lambda: child.stdout and child.stdout.close())
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        # It takes a moment until it has declared what it accepts.
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self.person.line.prompt("Hello!", "parrot")
                break
            except aaep.HubRefused:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
        self.person.hears("output.streaming", lambda event: event["chunk"] == "You said: Hello!")
        self.person.hears("session.completed")

    def test_the_subscriber_says_what_agents_say(self) -> None:
        child = start(self.hub, programs("## Python", SUBSCRIBERS)[0])
        assert child.stdout is not None
        lines: list[str] = []
        output = child.stdout
        reading = threading.Thread(target=lambda: lines.extend(iter(output.readline, "")), daemon=True)
        reading.start()
        deadline = time.monotonic() + PATIENCE
        while "Hello, reader.\n" not in lines:
            self.assertLess(time.monotonic(), deadline, lines)
            with self.agent().session("Greets.") as session:
                session.say("Hello, reader.")
            time.sleep(0.05)
        child.kill()
        child.wait()
        reading.join(PATIENCE)
        output.close()


del WithHub
