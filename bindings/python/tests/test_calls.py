"""Calls that are wrong, and what needs no hub."""

from __future__ import annotations

import asyncio
import os
import random
import re
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import aaep
from aaep.address import find_hub, parse, socket_paths
from aaep.digest import action_digest, canonical
from aaep.outcome import Outcome
from aaep.sentences import SentenceCutter

from .support import false_hub, takes_all

PAGE = Path(__file__).parents[3] / "docs" / "extension.md"


class WrongCalls(unittest.TestCase):
    """Each is an error at the call that says what to change, and nothing of it reaches the hub."""

    def setUp(self) -> None:
        self.sent: list[bytes] = []

        def answer(method: str, path: str, body: bytes) -> tuple[int, Any]:
            self.sent.append(body)
            return takes_all(method, path, body)

        held = false_hub(answer)
        self.hub = aaep.Hub("tidy", address=held.__enter__())
        self.addCleanup(held.__exit__, None, None, None)
        self.addCleanup(self.hub.close)

    def refused(self, saying: str, call: Any, *args: Any, **more: Any) -> None:
        with self.assertRaises(aaep.WrongCall) as caught:
            call(*args, **more)
        self.assertIn(saying, str(caught.exception))

    def test_a_wrong_call_says_what_to_change_and_sends_nothing(self) -> None:
        with self.hub.session("Works.") as it:
            self.hub.flush()
            before = len(self.sent)
            anything: Any = it
            self.refused("Give text", anything.say, 7)
            self.refused("Give text", anything.output().write, b"bytes")
            self.refused("Say something", it.say, " \n")
            self.refused("surrogate", it.say, "half \ud83d")
            self.refused("an iterator of texts", anything.stream, 7)
            self.refused("Give a number", it.progress, percent=101)
            self.refused("Give a number", anything.progress, percent=float("nan"))
            self.refused("Give words", it.progress)
            self.refused("form", it.tool, "not a name")
            self.refused("confirm()", it.tool, "delete", irreversible=True)
            self.refused("confirm()", it.tool, "delete", risk="high")
            self.refused("has no field", it.report, {"type": "aaep:agent.state.changed", "to": "x"})
            self.refused("method of its own", it.report, {"type": "aaep:agent.session.completed"})
            self.refused("not known", it.report, {"type": "aaep:agent.made.up"})
            self.refused("form", it.output, language="not a language")
            self.refused("empty", it.ask, "Which?", choices=[])
            self.refused("Give a list", it.ask, "Which?", choices="ab")
            self.refused("Use one of", anything.ask, "Which?", type="colour")
            self.refused("at least as much", it.ask, "Which?", timeout=9, max_timeout=8)
            self.refused("Give a number", it.confirm, "x", consequence="y", timeout=0)
            self.refused("Use one of", anything.confirm, "x", consequence="y", risk="none")
            self.refused("tool=", it.confirm, "x", consequence="y", args={"a": 1})
            self.refused("too long to be told", it.confirm, "x", consequence="y", tool="t", args={"a": "b" * 20_000})
            self.refused("not JSON", it.confirm, "x", consequence="y", tool="t", args={"a": object()})
            self.hub.flush()
            self.assertEqual(len(self.sent), before)
        self.refused("has no field", self.hub.session, "Works.", tools=["x"])
        self.refused("Use any of", aaep.Hub, "tidy", accepts=["prompts"])
        self.refused("Say something", aaep.Hub, "")

    def test_silence_consents_to_nothing_that_could_hurt(self) -> None:
        with self.hub.session("Works.") as it:
            harmless: dict[str, Any] = {"risk": "low", "irreversible": False}
            for change in ({"risk": "medium"}, {"risk": None}, {"irreversible": True}, {"irreversible": None}):
                more: dict[str, Any] = {**harmless, **change}
                with self.assertRaises(aaep.UnsafeDefault):
                    it.confirm("x", consequence="y", default="accept", **more)

    def test_nothing_follows_the_end(self) -> None:
        with self.hub.session("Works.") as it:
            output = it.output()
            it.end("Done.")
            for call in (it.say, it.progress, it.state, it.end, it.error, it.tool):
                with self.assertRaises(aaep.SessionEnded, msg=str(call)):
                    call("more")
            self.refused("closed", output.write, "more")
            with self.assertRaises(aaep.SessionEnded):
                it.confirm("x", consequence="y")
        with self.assertRaises(aaep.SessionEnded):
            it.say("more")

    def test_what_needs_a_session_says_so(self) -> None:
        @aaep.requires_consent("Delete.", consequence="Gone.")
        def delete() -> None:
            raise AssertionError("it ran")

        self.refused("inside", delete)


class Outcomes(unittest.TestCase):
    def test_only_an_accept_is_true_and_nothing_equals_an_outcome(self) -> None:
        names: Any = ["accept", "reject", "unanswered", "withdrawn", "unreachable", "refused"]
        for name in names:
            it = Outcome(name, "reply")
            self.assertEqual(bool(it), name == "accept")
            self.assertNotEqual(it, "accept")
            self.assertNotEqual(it, True)
            self.assertNotEqual(it, Outcome(name, "reply"))
        with self.assertRaises(aaep.NotAccepted):
            Outcome("reject", "reply").or_raise()

    def test_a_forgotten_await_is_no_consent(self) -> None:
        async def never() -> Outcome:
            raise AssertionError

        with self.assertRaises(TypeError):
            bool(aaep.Awaited(never))

    def test_awaited_twice_asks_once(self) -> None:
        async def once() -> int:
            return 1

        async def run() -> None:
            it = aaep.Awaited(once)
            self.assertEqual(await it, 1)
            with self.assertRaises(RuntimeError):
                await it

        asyncio.run(run())


class Digests(unittest.TestCase):
    def test_the_vectors_of_the_page(self) -> None:
        vectors = PAGE.read_text("utf-8").split("### Test vectors")[1].split("```")[1].strip().split("\n\n")
        self.assertEqual(len(vectors), 5)
        found = [line.split("\n")[1] for line in vectors]
        actions: list[tuple[str, Any]] = [
            ("delete", {"path": "/photos"}),
            ("reboot", {}),
            ("transfer_funds", {"amount": 4.5, "note": "für Ọlá\n", "to": ["a", 1.0, True, None]}),
            ("sort", {"€": 5, "\r": 1, "\ufb33": 7, "1": 2, "\U0001f600": 6, "\u0080": 3, "ö": 4}),
            ("numbers", [-0.0, -1, 1e-6, 1e-7, 333333333.3333333, 2**53 - 1]),
        ]
        for (tool, args), digest in zip(actions, found):
            self.assertEqual(action_digest(tool, args), f"sha-256:{digest}")

    def test_numbers_are_written_as_everywhere(self) -> None:
        for number, text in [(0.1, "0.1"), (100.0, "100"), (1.5e-8, "1.5e-8"), (123456.789, "123456.789"),
                             (0.00001, "0.00001"), (-2.5e-10, "-2.5e-10"), (9007199254740991.0, "9007199254740991")]:
            self.assertEqual(canonical(number), text)

    def test_what_languages_disagree_about_has_no_digest(self) -> None:
        deep: Any = 1
        for _ in range(70):
            deep = [deep]
        for value in (2**53, -(2**53), 1e300, float("inf"), float("nan"), {1: 2}, "half \ud83d", deep, {1, 2}):
            with self.assertRaises(aaep.WrongCall):
                action_digest("x", {"a": value})


class Sentences(unittest.TestCase):
    def test_whatever_the_tokens_nothing_is_lost_or_repeated(self) -> None:
        chance = random.Random(7)
        for _ in range(300):
            text = "".join(chance.choice('ab .!?\n"。…)é\u0301') for _ in range(chance.randrange(1500)))
            cutter, pieces, at = SentenceCutter(), list[str](), 0
            while at < len(text):
                step = chance.randrange(1, 9)
                pieces.append(cutter.add(text[at : at + step]))
                at += step
            pieces.append(cutter.rest())
            self.assertEqual("".join(pieces), text)

    def test_sentences_go_out_and_not_tokens(self) -> None:
        cutter = SentenceCutter()
        words = re.findall(r"\S+\s*", "Version 2.5 is out. It is small! 中文。 And the rest")
        self.assertEqual([it for it in map(cutter.add, words) if it], ["Version 2.5 is out. ", "It is small! ", "中文。 "])
        self.assertEqual(cutter.rest(), "And the rest")

    def test_words_without_a_sentence_do_not_wait_for_ever(self) -> None:
        cutter = SentenceCutter()
        found = [it for it in (cutter.add("word ") for _ in range(500)) if it]
        self.assertTrue(found and all(len(it) <= 620 for it in found))
        late = mock.patch("aaep.sentences.time.monotonic", side_effect=[0.0, 3.0])
        with late, mock.patch("aaep.sentences.PATIENCE_SECONDS", 2.0):
            cutter = SentenceCutter()
            self.assertEqual(cutter.add("no end "), "")
            self.assertEqual(cutter.add("yet "), "no end yet ")


class Addresses(unittest.TestCase):
    def test_addresses_are_read_as_everywhere(self) -> None:
        for text, shown in [
            ("http://127.0.0.1:7117", "http://127.0.0.1:7117"),
            ("ws://localhost:1/aaep/v1/ws", "http://localhost:1"),
            ("wss://hub.example.org", "https://hub.example.org:443"),
            ("https://hub.example.org/", "https://hub.example.org:443"),
            ("http://[::1]:9", "http://[::1]:9"),
            ("unix:/run/hub.sock", "unix:/run/hub.sock"),
            ("/run/hub.sock", "unix:/run/hub.sock"),
        ]:
            self.assertEqual(str(parse(text)), shown)

    def test_what_is_no_address_or_leaves_the_machine_in_the_clear_is_refused(self) -> None:
        for text in ("ftp://a", "http://", "http://a@127.0.0.1/", "http://127.0.0.1:x", "http://10.0.0.1:7117",
                     "http://localhost.example.org", "http://127.0.0.1.example.org", "http://a\r\nx: y", "nothing"):
            with self.assertRaises(aaep.WrongCall, msg=text):
                parse(text)

    def test_the_variable_counts_and_the_first_of_several_hubs(self) -> None:
        with mock.patch.dict(os.environ, {"AAEP_HUB": "unix:/run/a,b.sock, https://c.example"}):
            self.assertEqual(str(find_hub()), "unix:/run/a,b.sock")
            self.assertEqual(str(find_hub("http://127.0.0.1:1")), "http://127.0.0.1:1")
        with mock.patch.dict(os.environ, {"AAEP_HUB": " ", "XDG_RUNTIME_DIR": "/nowhere"}):
            self.assertEqual(socket_paths()[0], "/nowhere/aaep/aaep-hub.sock")

    def test_a_token_cannot_smuggle_a_header(self) -> None:
        for token in ("a\r\nx: y", "a b", "\u00fc"):
            with self.assertRaises(aaep.WrongCall):
                aaep.Hub("tidy", address="http://127.0.0.1:9", token=token)


if __name__ == "__main__":
    unittest.main()
