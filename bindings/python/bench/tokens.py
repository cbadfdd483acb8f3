"""What a streamed token costs: the same program with the kit and without it, in turns, in one run.

AAEP_HUB=unix: python3 bench/tokens.py
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterable

import aaep

WORDS = "The quick brown fox jumps over the lazy dog and goes home. ".split(" ")


def tokens(count: int, pause: float) -> Iterable[str]:
    """Tokens as a model streams them: a word each, twelve to a sentence, and a pause after each sentence."""
    for at in range(count):
        yield WORDS[at % len(WORDS)] + " "
        if pause and at % len(WORDS) == len(WORDS) - 1:
            time.sleep(pause)


def cost(source: Iterable[str], count: int) -> float:
    """Microseconds of CPU for each token, of all threads of this process."""
    before = time.process_time()
    text: list[str] = []
    for token in source:
        text.append(token)
    return (time.process_time() - before) / count * 1e6


def with_the_kit(hub: aaep.Hub, count: int, pause: float) -> float:
    """The same with the kit. What its other thread does to send the text counts too."""
    with hub.session("Measures.") as session:
        hub.flush()
        before = time.process_time()
        cost(session.stream(tokens(count, pause)), count)
        hub.flush(60)
        return (time.process_time() - before) / count * 1e6


def main() -> None:
    """Prints the medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=1200)
    parser.add_argument("--rounds", type=int, default=31)
    args = parser.parse_args()
    found: dict[str, list[float]] = {}
    with aaep.Hub("bench-tokens") as hub:
        for _ in range(args.rounds):
            for name, pause in (("all at once", 0.0), ("each sentence alone", 0.01)):
                without = cost(tokens(args.tokens, pause), args.tokens)
                more = with_the_kit(hub, args.tokens, pause) - without
                found.setdefault(f"{name}, without the kit", []).append(without)
                found.setdefault(f"{name}, what the kit adds", []).append(more)
        print(f"{args.tokens} tokens, {args.rounds} rounds, microseconds of CPU for each token, median:")
        for name, values in found.items():
            print(f"  {statistics.median(values):6.2f}  {name}")
        print(f"  {hub.outbox.left_out} reports left out")


if __name__ == "__main__":
    main()
