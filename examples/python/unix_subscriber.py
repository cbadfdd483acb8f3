"""Hears a hub on its local socket, and lets the person at the keyboard answer: python3 unix_subscriber.py"""

import json
import os
import socket
import sys
import time

PATH = os.environ.get("AAEP_SOCKET") or f"{os.environ['XDG_RUNTIME_DIR']}/aaep/aaep-hub.sock"


def words(message):
    """Before a yes, the person hears the consequence, the risk and whether it can be undone."""
    if "action" not in message:
        return message.get("summary_normal") or message.get("question") or message["type"]
    is_final = message.get("irreversible") or message.get("reversibility") == "irreversible"
    undo = "It cannot be undone." if is_final else f"Undo: {message.get('reversibility', 'not known')}."
    return f"{message['action']} {message['consequence']} Risk: {message.get('risk_level', 'not known')}. {undo}"


with socket.socket(socket.AF_UNIX) as hub:
    hub.connect(PATH)
    lines = hub.makefile("rw", encoding="utf-8", newline="\n")

    def say(message):
        print(json.dumps(message), file=lines, flush=True)

    say({"type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "python",
         "capabilities": {"supports_confirmation_reply": True, "languages": ["en"]}})
    for line in lines:
        message = json.loads(line)
        print(words(message), flush=True)
        if message["type"] == "subscription.accepted":
            subscription = message["subscription_id"]
        elif message["type"] == "aaep:agent.awaiting.confirmation":
            print("Type accept or reject:", flush=True)
            decision = sys.stdin.readline().strip()
            if decision in ("accept", "reject"):  # Anything else is no answer.
                say({"type": "confirmation.reply", "reply_token": message["reply_token"],
                     "subscription_id": subscription, "decision": decision,
                     "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
        elif message["type"] == "aaep:agent.session.completed":
            break
