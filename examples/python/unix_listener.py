"""Hears a hub on its local socket, and answers one question: python3 unix_listener.py accept"""

import json
import os
import socket
import sys
import time

PATH = os.environ.get("AAEP_SOCKET") or f"{os.environ['XDG_RUNTIME_DIR']}/aaep/aaep-hub.sock"
with socket.socket(socket.AF_UNIX) as hub:
    hub.connect(PATH)
    lines = hub.makefile("rw", encoding="utf-8", newline="\n")

    def say(message):
        print(json.dumps(message), file=lines, flush=True)

    say({"type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "python",
         "capabilities": {"supports_confirmation_reply": True, "languages": ["en"]}})
    for line in lines:
        message = json.loads(line)
        print(message.get("summary_normal") or message.get("action") or message["type"], flush=True)
        if message["type"] == "subscription.accepted":
            subscription = message["subscription_id"]
        elif message["type"] == "aaep:agent.awaiting.confirmation":
            say({"type": "confirmation.reply", "reply_token": message["reply_token"],
                 "subscription_id": subscription, "decision": sys.argv[1],
                 "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
        elif message["type"] == "aaep:agent.session.completed":
            break
