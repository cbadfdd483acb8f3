"""An agent with nothing but Python's own library: it says what it does, and asks before it deletes.

Ends with 0 if the person said yes and it did it, with 1 if it was anything else than yes.
"""

import json
import os
import secrets
import sys
import time
import urllib.error
import urllib.request

HUB = os.environ.get("AAEP_HUB", "http://127.0.0.1:7117")
TOKEN = os.environ.get("AAEP_TOKEN")


def send(path, kind, **fields):
    """Sends an event to the hub. What it leaves out, the hub fills in."""
    event = {"type": f"aaep:agent.{kind}", "producer": {"agent_id": "photo-keeper"}, **fields}
    request = urllib.request.Request(HUB + path, json.dumps(event).encode())
    request.add_header("Content-Type", "application/json")
    if TOKEN:
        request.add_header("Authorization", f"Bearer {TOKEN}")
    with urllib.request.urlopen(request, timeout=90) as answer:
        return json.load(answer)


def publish(kind, **fields):
    """Says something. Returns when the hub has stored it."""
    return send("/aaep/v1/publish", kind, **fields)


def ask(**fields):
    """Asks and waits, also while the hub is started anew. With the same event_id it is the same question."""
    fields["event_id"] = f"evt_{secrets.token_hex(16)}"
    while True:
        try:
            answer = send("/aaep/v1/asks", "awaiting.confirmation", **fields)
            if answer["status"] == "settled":
                return answer
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                raise
            time.sleep(1)
        except OSError:
            time.sleep(1)


def main():
    session = publish("session.started", summary_normal="Looking for old photos.")["session_id"]
    publish("tool.invoked", session_id=session, tool="list_photos", tool_call_id="call_list",
            summary_normal="Listing the photos of 2019.")
    publish("tool.completed", session_id=session, tool="list_photos", tool_call_id="call_list",
            status="success", summary_normal="There are 240 photos of 2019.")
    print("The agent asks.", flush=True)
    answer = ask(session_id=session, action="Delete 240 photos of 2019.", consequence="They are gone for good.",
                 risk_level="high", irreversible=True, timeout_seconds=120, default_decision="reject",
                 summary_normal="May I delete 240 photos of 2019?")
    print(f"The answer is {answer['outcome']}, decided by {answer['decided_by']}.", flush=True)
    if answer["outcome"] != "accept":
        publish("session.completed", session_id=session, summary_normal="Done. Nothing was deleted.")
        return 1
    publish("tool.invoked", session_id=session, tool="delete_photos", tool_call_id="call_delete",
            irreversible=True, summary_normal="Deleting 240 photos.")
    publish("tool.completed", session_id=session, tool="delete_photos", tool_call_id="call_delete",
            status="success", summary_normal="240 photos are deleted.")
    publish("session.completed", session_id=session, summary_normal="Done. 240 photos were deleted.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
