"""A Unix socket and nothing but Python's own library: the example, and messages after their length."""

import json
import socket
import struct
import subprocess
import sys

from support import (HERE, PATIENCE, Agent, Hub, check, check_told, end, hear_until, lines_of, reply, request,
                     run)

EXAMPLE = HERE.parent.parent / "examples" / "python" / "unix_subscriber.py"


def the_example_answers(hub, decision):
    print(f"The example answers {decision}, in lines.")
    path = hub.folder / "hub.sock"
    subscriber = subprocess.Popen([sys.executable, EXAMPLE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                env={**hub.environment, "AAEP_SOCKET": str(path)})
    try:
        lines = lines_of(subscriber)
        first = lines.get(timeout=PATIENCE)
        check(first == "subscription.accepted", "Its subscription is accepted.", first)
        with Agent(hub) as agent:
            before = hear_until(lines, "Type accept or reject:")
            check_told(before[-2])
            subscriber.stdin.write(decision + "\n")
            subscriber.stdin.flush()
            agent.ends_with(decision, "reply")
        check(subscriber.wait(PATIENCE) == 0, "The example ends well when the session has.", subscriber.returncode)
    finally:
        end(subscriber)


def messages_after_their_length(hub):
    print("The same in messages after their length.")
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(PATIENCE)
        wire.connect(str(hub.folder / "hub.sock"))

        def say(message):
            text = json.dumps(message).encode()
            wire.sendall(struct.pack(">I", len(text)) + text)

        def exactly(count):
            found = b""
            while len(found) < count:
                more = wire.recv(count - len(found))
                if not more:
                    check(False, "The connection is still there.", found)
                found += more
            return found

        def hear_until(kind):
            while True:
                message = json.loads(exactly(struct.unpack(">I", exactly(4))[0]))
                if message["type"] == kind:
                    return message

        say(request())
        subscription = hear_until("subscription.accepted")["subscription_id"]
        check(subscription, "A subscription is accepted.")
        with Agent(hub) as agent:
            asked = hear_until("aaep:agent.awaiting.confirmation")
            say(reply(subscription, asked["reply_token"], "accept"))
            agent.ends_with("accept", "reply")
        say({"type": "subscription.close", "subscription_id": subscription})
        closed = hear_until("agentvoice:closed")
        check(closed["code"] == 4005, "The hub says goodbye.", closed)
        check(wire.recv(1) == b"", "Then the connection ends.")


def main():
    with Hub() as hub:
        mode = (hub.folder / "hub.sock").stat().st_mode & 0o777
        check(mode == 0o600, "The socket is of its user alone.", oct(mode))
        the_example_answers(hub, "accept")
        the_example_answers(hub, "reject")
        messages_after_their_length(hub)
        hub.stop()
        check(not (hub.folder / "hub.sock").exists(), "The socket is gone with the hub.")


run(main)
