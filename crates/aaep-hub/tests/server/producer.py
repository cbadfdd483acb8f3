"""An agent that speaks AAEP over JSON-RPC on its standard input and output (B.6), for the tests of children.

Its first argument says what it does. What it was told back is in the words of its last event.
"""

import datetime
import json
import os
import queue
import sys
import threading
import time
import uuid

SESSION = "sess_" + uuid.uuid4().hex
HEARD = queue.Queue()


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read():
    for line in sys.stdin:
        HEARD.put(json.loads(line))
    HEARD.put(None)


def emit(kind, **fields):
    event = {
        "@context": "https://aaep-protocol.org/context/v1",
        "type": "aaep:agent." + kind,
        "event_id": "evt_" + uuid.uuid4().hex,
        "session_id": SESSION,
        "timestamp": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds"),
        "producer": {"agent_id": "cleaner"},
    }
    if kind == "awaiting.confirmation" or kind == "session.errored":
        event["urgency"] = "critical"
    event.update(fields)
    event = {name: value for name, value in event.items() if value is not None}
    say({"method": "aaep.event", "params": event})


def hear(method, seconds=30):
    """The next message with this method, or none within the time. Everything else is passed over."""
    until = time.monotonic() + seconds
    while True:
        try:
            message = HEARD.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return None
        if message is None:
            sys.exit(0)
        if message.get("method") == method or (method is None and "method" not in message):
            return message


def subscribed():
    request = hear("aaep.subscribe")
    wanted = request["params"]["capabilities"]
    say({
        "id": request["id"],
        "result": {
            "type": "subscription.accepted",
            "aaep_version": "1.0.0",
            "subscription_id": "sub_ofthechild",
            "honored_capabilities": wanted,
            "producer": {"agent_id": "cleaner"},
            "manifest_uri": "https://example.org/manifest.json",
        },
    })


def start():
    subscribed()
    emit("session.started", summary_normal="I tidy up.")


def ask(**fields):
    token = "rpl_" + uuid.uuid4().hex
    emit("awaiting.confirmation", **{
        "action": "Delete the database",
        "consequence": "Everything in it is lost.",
        "reply_token": token,
        "timeout_seconds": 60,
        "default_decision": "reject",
        "irreversible": True,
        "risk_level": "high",
        "summary_normal": "Delete the database?",
        "sequence_number": None,
        **fields,
    })
    return token


def decisions(token, first=30, more=0.5):
    """All decisions about a question: the first, and whatever comes within a while after it."""
    got, reply = [], hear("aaep.reply", first)
    while reply is not None:
        params = reply["params"]
        right = params["reply_token"] == token and params["subscription_id"] == "sub_ofthechild"
        got.append(params.get("decision", params.get("response")) if right else "wrong: " + json.dumps(params))
        reply = hear("aaep.reply", more)
    return got


def told(got):
    emit("session.completed", summary_normal="I was told: " + json.dumps(got))
    hear("never")


def confirm():
    start()
    got = decisions(ask())
    if got == ["accept"]:
        call = {"tool": "delete", "tool_call_id": "call_1"}
        emit("tool.invoked", **call, irreversible=True, summary_normal="Deleting.")
        emit("tool.completed", **call, status="success", summary_normal="Deleted.")
    told(got)


def joined():
    """Its session began before anyone subscribed."""
    subscribed()
    emit("state.changed", from_state="thinking", to_state="executing", summary_normal="I tidy up, still.")
    told(decisions(ask()))


def clarify():
    start()
    token = "rpl_" + uuid.uuid4().hex
    emit("awaiting.clarification", question="Which folder?", reply_token=token, timeout_seconds=60,
         summary_normal="Which folder?", accepted_response_kinds=["freetext"])
    told(decisions(token))


def silence():
    start()
    told(decisions(ask(timeout_seconds=1), first=3))


def silence_means_yes():
    start()
    told(decisions(ask(timeout_seconds=1, default_decision="accept", irreversible=False, risk_level="low",
                       reversibility="reversible"), first=3))


def withdraw():
    start()
    ask()
    emit("state.changed", from_state="awaiting_input", to_state="executing", summary_normal="I go on.")
    told(decisions(None, first=1))


def hang():
    start()
    ask(summary_normal="Process %d asks." % os.getpid())
    hear("never", 600)


def wrong():
    """Everything that is wrong and not the end of it."""
    sys.stdout.write("Loading the model...\n\x1b[2J\n{}\n[]\n")
    say({"method": "vendor.note", "params": {}})
    say({"id": "why", "method": "vendor.ask"})
    start()
    emit("progress.updated", session_id="sess_never", summary_normal="Half.", progress={"percent": 50})
    emit("tool.completed", tool="delete", tool_call_id="call_9", status="success", summary_normal="Never began.")
    emit("progress.updated", summary_normal="No progress.")
    refused = [decisions(ask(action=None), more=0.2)]
    refused.append(decisions(ask(vendor_field=1), more=0.2))
    same = "evt_" + uuid.uuid4().hex
    emit("progress.updated", event_id=same, summary_normal="Half.", progress={"percent": 50})
    told(refused)


def unanswered_request():
    say({"id": "why", "method": "vendor.ask"})
    start()
    answer = hear(None)
    told([answer["error"]["code"]])


def long_line():
    start()
    sys.stdout.write("x" * (10 << 20) + "\n")
    sys.stdout.flush()
    time.sleep(600)


def same_question():
    """Asks, and is told; then sends the very same event again, and once more with its token alone."""
    start()
    event_id, token = "evt_" + uuid.uuid4().hex, "rpl_" + uuid.uuid4().hex
    got = []
    ask(event_id=event_id, reply_token=token)
    got += decisions(token)
    ask(event_id=event_id, reply_token=token)
    got += decisions(token, first=1)
    ask(reply_token=token)
    got += decisions(token, first=1)
    told(got)


def reused_event():
    """Another question under the id of an event that was accepted before."""
    start()
    event_id = "evt_" + uuid.uuid4().hex
    got = decisions(ask(event_id=event_id))
    got += decisions(ask(event_id=event_id, action="Delete the backup"), first=3)
    told(got)


def own_ids():
    """Has ids of another form, and leaves out what the hub fills in."""
    global SESSION
    SESSION = str(uuid.uuid4())
    start()
    emit("tool.invoked", event_id="1", tool="shell", tool_call_id="toolu_0-1", summary_normal="Runs.")
    emit("tool.completed", event_id="2", tool="shell", tool_call_id="toolu_0-1", status="success")
    emit("output.streaming", event_id=None, chunk="Hm.", complete=True)
    told(decisions(ask(event_id="3"), first=20))


def refuse():
    request = hear("aaep.subscribe")
    say({"id": request["id"], "error": {"code": -1, "message": "Not you."}})
    hear("never", 600)


def wait_for_file():
    while not os.path.exists(sys.argv[2]):
        time.sleep(0.01)
    confirm()


def end():
    start()
    sys.exit(7)


threading.Thread(target=read, daemon=True).start()
globals()[sys.argv[1]]()
