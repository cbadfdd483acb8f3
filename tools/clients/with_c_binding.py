"""The examples on the C library, in C and in Python: a person types, and the agent hears it."""

import os
import subprocess
import sys

from support import HERE, PATIENCE, Agent, Hub, check, check_told, end, hear_until, lines_of, run

LIBRARY = os.environ["AAEP_LIBRARY"]
C_EXAMPLE = os.environ["AAEP_C_SUBSCRIBER"]
PYTHON_EXAMPLE = HERE.parent.parent / "examples" / "python" / "ctypes_subscriber.py"


def a_person_types(hub, example, where):
    subscriber = subprocess.Popen([*example, where], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                env=hub.environment)
    try:
        lines = lines_of(subscriber)
        hear_until(lines, "Listening.")
        for decision in ("accept", "reject"):
            with Agent(hub) as agent:
                check_told(hear_until(lines, "Type accept or reject:")[-1])
                subscriber.stdin.write(decision + "\n")
                subscriber.stdin.flush()
                agent.ends_with(decision, "reply")
                hear_until(lines, "The question is resolved.")
        with Agent(hub) as agent:
            hear_until(lines, "Type accept or reject:")
            subscriber.stdin.close()
            agent.ends_with("reject", "no_listener")
        check(subscriber.wait(PATIENCE) == 0, "The example says goodbye when the keyboard is gone.",
              subscriber.returncode)
    finally:
        end(subscriber)


def main():
    with Hub() as hub:
        examples = [("C", [C_EXAMPLE]), ("Python", [sys.executable, PYTHON_EXAMPLE, LIBRARY])]
        for language, example in examples:
            for where in (hub.url, f"unix:{hub.folder / 'hub.sock'}"):
                print(f"In {language}, at {where.split(':')[0]}:")
                a_person_types(hub, example, where)
        nowhere = subprocess.run([C_EXAMPLE, "http://127.0.0.1:1"], capture_output=True, text=True, check=False,
                                 timeout=PATIENCE)
        check(nowhere.returncode == 2 and "Nobody answers" in nowhere.stderr,
              "Where no hub is, the example says so.", nowhere.stderr)
        hub.stop()


run(main)
