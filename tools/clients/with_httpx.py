"""httpx and httpx-sse: a subscription, a question answered, and a stream that is cut and resumed."""

import contextlib
import json

import httpx
import httpx_sse

import agent
from support import NEVER_SENT, PATIENCE, Agent, Hub, check, reply, request, resolution, run

# Everyone shows a token here, so that who may answer is decided by who it is.
CONFIG = "[access]\nloopback_needs_credentials = true\n"
ROUNDS = 6


def client(hub, token):
    return httpx.Client(base_url=hub.url, timeout=PATIENCE, headers={"Authorization": f"Bearer {token}"})


def subscribe(subscriber):
    answer = subscriber.post("/aaep/v1/subscriptions", json=request())
    check(answer.status_code == 201, "A subscription is accepted.", answer.text)
    accepted = answer.json()
    subscription = accepted["subscription_id"]
    place = f"/aaep/v1/events?subscription_id={subscription}"
    check(answer.headers["location"] == place, "Location names the stream.", answer.headers)
    return subscription, place


@contextlib.contextmanager
def events(subscriber, place, last=None):
    """The events of a stream, each with its frame checked."""
    headers = {"Last-Event-ID": last} if last else {}
    with httpx_sse.connect_sse(subscriber, "GET", place, headers=headers) as source:
        source.response.raise_for_status()
        yield map(parsed, source.iter_sse())


def parsed(frame):
    event = json.loads(frame.data)
    if frame.event != "aaep.event" or frame.id != event["event_id"]:
        check(False, "Every frame is an aaep.event with the id of its event.", frame)
    return event


def a_question_is_answered(hub, me, other, its_token):
    print("A question is answered.")
    subscription, place = subscribe(me)
    foreign, _ = subscribe(other)
    with events(me, place) as stream, Agent(hub, its_token) as asking:
        kinds = []
        for event in stream:
            kinds.append(event["type"].removeprefix("aaep:agent."))
            if kinds[-1] == "awaiting.confirmation":
                break
        # That the agent waits is announced by the hub.
        wanted = ["session.started", "tool.invoked", "tool.completed", "state.changed", "awaiting.confirmation"]
        check(kinds == wanted, "Everything until the question comes, in order.", kinds)
        check(event["urgency"] == "critical" and event["irreversible"] is True
              and event["default_decision"] == "reject" and event["action"] == "Delete 240 photos of 2019.",
              "The question says what it is about, and that silence means no.", event)
        token = event["reply_token"]
        refusals(hub, me, other, its_token, (subscription, foreign, token))
        asking.still_waits()
        answer = me.post("/aaep/v1/replies", json=reply(subscription, token, "accept"))
        check(answer.status_code == 204 and not answer.content, "The person says yes, and it counts.", answer)
        settled = next(found for event in stream if (found := resolution(event)))
        check(settled == {"reply_token": token, "outcome": "accept", "decided_by": "reply"},
              "The stream says how it was settled.", settled)
        twice = me.post("/aaep/v1/replies", json=reply(subscription, token, "reject"))
        check(twice.status_code == 400, "Another answer afterwards does not count.", twice.text)
        asking.ends_with("accept", "reply")
        last = next(event for event in stream if event["type"] == "aaep:agent.session.completed")
        check(last["summary_normal"] == "Done. 240 photos were deleted.", "The end of the session comes.", last)
    check(me.post("/aaep/v1/replies", json={"type": "subscription.close", "subscription_id": subscription})
          .status_code == 204, "The subscription is closed.")
    check(me.get(place).status_code == 404, "After that there is no stream of it.")


def refusals(hub, me, other, its_token, ids):
    """What is no answer: forged, from others, or not to be read."""
    subscription, foreign, token = ids
    tries = [
        (me, reply(subscription, NEVER_SENT, "accept"), "A token that was never given"),
        (other, reply(subscription, token, "accept"), "A stranger on the person's subscription"),
        (other, reply(foreign, token, "accept"), "A stranger who may not hear this agent"),
    ]
    bodies = set()
    for who, message, name in tries:
        answer = who.post("/aaep/v1/replies", json=message)
        bodies.add(answer.text)
        check(answer.status_code == 400 and answer.json()["error"] == "invalid_token",
              f"{name} does not count.", answer.text)
    check(len(bodies) == 1, "All of them hear exactly the same.", bodies)
    with client(hub, its_token) as it:
        answer = it.post("/aaep/v1/replies", json=reply(subscription, token, "accept"))
        check(answer.status_code == 403, "The agent cannot answer its own question.", answer.text)
    with httpx.Client(base_url=hub.url, timeout=PATIENCE) as nobody:
        answer = nobody.post("/aaep/v1/replies", json=reply(subscription, token, "accept"))
        check(answer.status_code == 401 and answer.headers["www-authenticate"].startswith("Bearer"),
              "Without a token nobody answers.", answer.text)
    answer = me.post("/aaep/v1/replies", json=reply(subscription, token, "perhaps"))
    check(answer.status_code == 400 and answer.json()["violations"],
          "A decision that does not exist is refused, and it says why.", answer.text)
    answer = me.post("/aaep/v1/replies", content=b'{"type":"confirmation.reply"',
                     headers={"Content-Type": "application/json"})
    check(answer.status_code == 400, "Half a message is refused.", answer.text)


def a_stream_is_cut_and_resumed(me):
    print("A stream is cut and resumed.")
    _, place = subscribe(me)
    session = agent.publish("session.started", summary_normal="Counting.")
    published = [session["event_id"]]
    heard = []
    for part in range(ROUNDS):
        for number in range(4):
            done = agent.publish("tool.invoked", session_id=session["session_id"], tool="count",
                                 tool_call_id=f"call_{part}x{number}", summary_normal="Counting on.")
            published.append(done["event_id"])
        # Two are read and the rest is lost on the way, but for the last time. At most 16 wait: more tools
        # than that would be summed up in one event (ruling 10).
        wanted = len(published) if part == ROUNDS - 1 else len(heard) + 2
        with events(me, place, heard[-1] if heard else None) as stream:
            while len(heard) < wanted:
                heard.append(next(stream)["event_id"])
    check(heard == published, f"{len(heard)} events over {ROUNDS} connections: none is lost, none comes twice.",
          [heard, published])
    with events(me, f"{place}&last_event_id={heard[-3]}") as stream:
        again = [next(stream)["event_id"] for _ in range(2)]
        check(again == heard[-2:], "The last event can be named in the address too.", again)
        live = agent.publish("progress.updated", session_id=session["session_id"], progress={"percent": 99},
                             summary_normal="Nearly done.")
        check(next(stream)["event_id"] == live["event_id"], "What comes now follows at once.")
    answer = me.get(place, headers={"Last-Event-ID": "no id at all"})
    check(answer.status_code == 400, "A last event that is none is refused.", answer.text)


def main():
    with Hub(CONFIG) as hub:
        its_token = hub.token("agent", "publish")
        agent.HUB, agent.TOKEN = hub.url, its_token
        with client(hub, hub.token("person", "listen", "reply")) as me, \
                client(hub, hub.token("stranger", "listen", "reply", hears="chess-player")) as other:
            a_question_is_answered(hub, me, other, its_token)
            a_stream_is_cut_and_resumed(me)
        hub.stop()


run(main)
