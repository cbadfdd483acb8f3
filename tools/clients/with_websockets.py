"""websockets: a question answered, other terms, cut and resumed, rejected, closed."""

import contextlib
import json

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import agent
from support import NEVER_SENT, PATIENCE, Agent, Hub, check, reply, request, resolution, run


@contextlib.contextmanager
def socket(hub, **more):
    """A connection of a subscriber."""
    where = hub.url.replace("http", "ws", 1) + "/aaep/v1/ws"
    with connect(where, subprotocols=["aaep.v1"], open_timeout=PATIENCE, close_timeout=1, **more) as open_socket:
        yield open_socket


def hear(wire):
    return json.loads(wire.recv(timeout=PATIENCE))


def hear_until(wire, wanted):
    """The first message that is wanted."""
    while True:
        message = hear(wire)
        if wanted(message):
            return message


def of_kind(kind):
    return lambda message: message["type"] == kind


def say(wire, message):
    wire.send(json.dumps(message))


def close_code(wire):
    """The code with which the hub ends the connection."""
    try:
        while True:
            wire.recv(timeout=PATIENCE)
    except ConnectionClosed as closed:
        return closed.rcvd and closed.rcvd.code


def subscribe(wire, **more):
    say(wire, request(**more))
    accepted = hear(wire)
    check(accepted["type"] == "subscription.accepted", "A subscription is accepted.", accepted)
    return accepted["subscription_id"]


def a_question_is_answered(hub):
    print("A question is answered with no, on one WebSocket.")
    with socket(hub) as wire:
        check(wire.subprotocol == "aaep.v1", "The subprotocol aaep.v1 is agreed on.", wire.subprotocol)
        check(wire.ping().wait(PATIENCE), "A ping is answered.")
        say(wire, {"type": "nothing.known"})
        error = hear(wire)
        check(error["error"] == "not_valid", "What is no message is said to be none, and nothing breaks.", error)
        subscription = subscribe(wire)
        with Agent(hub) as asking:
            the_person_says_no(wire, asking, subscription)
        say(wire, {"type": "subscription.renegotiate", "subscription_id": subscription,
                   "capabilities": {"preferred_verbosity": "detailed"}})
        renewed = hear_until(wire, of_kind("subscription.accepted"))
        honored = renewed["honored_capabilities"]
        check(honored["preferred_verbosity"] == "detailed" and honored["supports_confirmation_reply"],
              "Other terms are granted; what they do not name stays.", renewed)
        say(wire, {"type": "subscription.close", "subscription_id": subscription})
        code = close_code(wire)
        check(code == 4005, "After subscription.close the hub ends the connection with 4005.", code)


def the_person_says_no(wire, asking, subscription):
    asked = hear_until(wire, of_kind("aaep:agent.awaiting.confirmation"))
    say(wire, reply(subscription, NEVER_SENT, "accept"))
    error = hear_until(wire, of_kind("agentvoice:error"))
    check(error["error"] == "invalid_token", "A forged reply does not count.", error)
    asking.still_waits()
    text = json.dumps(reply(subscription, asked["reply_token"], "reject"))
    wire.send([text[:20], text[20:40], text[40:]])
    settled = resolution(hear_until(wire, resolution))
    check(settled["outcome"] == "reject" and settled["decided_by"] == "reply",
          "A reply in three fragments counts, and the stream says how it was settled.", settled)
    asking.ends_with("reject", "reply")


def a_socket_is_cut_and_resumed(hub):
    print("A WebSocket is cut without a goodbye and resumed.")
    started = agent.publish("session.started", summary_normal="Counting.")
    session = started["session_id"]
    published, heard = [], []
    last = subscription = None
    for part in range(4):
        with socket(hub) as wire:
            more = {}
            if subscription:
                wish = {"subscription_id": subscription, "last_event_id": last}
                more = {"extensions": {"agentvoice": {"resume": wish}}}
            subscription = subscribe(wire, **more)
            if part == 0:
                # Who comes in the middle of a session hears first what it is about.
                last = hear(wire)["event_id"]
            for number in range(4):
                done = agent.publish("tool.invoked", session_id=session, tool="count",
                                     tool_call_id=f"call_{part}x{number}", summary_normal="Counting on.")
                published.append(done["event_id"])
            wanted = len(published) if part == 3 else len(heard) + 2
            while len(heard) < wanted:
                heard.append(hear(wire)["event_id"])
            last = heard[-1]
            wire.socket.close()
    check(heard == published, f"{len(heard)} events over 4 connections: none is lost, none comes twice.",
          [heard, published])


def who_is_turned_away(hub):
    print("Who is turned away hears why.")
    with socket(hub) as wire:
        say(wire, request(aaep_version="9.0.0"))
        rejected = hear(wire)
        check(rejected["type"] == "subscription.rejected" and rejected["reason_code"] == "version_unsupported",
              "A version that nobody speaks is rejected.", rejected)
        code = close_code(wire)
        check(code == 4001, "Then the hub ends the connection with 4001.", code)
    with socket(hub, additional_headers={"Authorization": "Bearer aaep_wrong"}) as wire:
        code = close_code(wire)
        check(code == 4002, "A wrong token is turned away with 4002.", code)
    try:
        with connect(hub.url.replace("http", "ws", 1) + "/aaep/v1/ws", open_timeout=PATIENCE):
            check(False, "Without the subprotocol there is no connection.")
    except InvalidStatus as error:
        check(error.response.status_code == 400, "Without the subprotocol there is no connection.", error)
    with socket(hub) as wire:
        for _ in range(16):
            wire.send("{")
        code = close_code(wire)
        check(code == 4004, "Who sends nothing but nonsense is sent away with 4004.", code)


def main():
    with Hub() as hub:
        agent.HUB = hub.url
        a_question_is_answered(hub)
        a_socket_is_cut_and_resumed(hub)
        who_is_turned_away(hub)
        with socket(hub) as wire:
            subscribe(wire)
            hub.stop()
            code = close_code(wire)
            check(code == 1001, "A hub that stops says so with 1001.", code)


run(main)
