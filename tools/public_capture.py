"""Lets the public capture tool record a session of the hub, and `aaep validate` judge the recording."""

import json
import subprocess
import sys
import time
import urllib.request

tool, origin, path, aaep = sys.argv[1:5]
log = open(path + ".txt", "w", encoding="utf-8")
recording = path + ".jsonl"
capture = subprocess.Popen([tool, "--endpoint", origin, "--output", recording, "--timeout", "20",
                            "--filter-type", "aaep:agent.session.started",
                            "--filter-type", "aaep:agent.output.streaming",
                            "--filter-type", "aaep:agent.session.completed",
                            "--max-events", "5"], stdout=log, stderr=log)


def prompt(text):
    body = json.dumps({"kind": "user_input", "text": text}).encode()
    request = urllib.request.Request(origin + "/messages", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert 200 <= answer.status < 300


# A prompt that comes before the stream is held until there is one.
time.sleep(1)
prompt("Write a short three-sentence paragraph.")
try:
    capture.wait(timeout=30)
finally:
    capture.kill()
with open(recording, encoding="utf-8") as file:
    kinds = [json.loads(line)["type"].removeprefix("aaep:agent.") for line in file]
judged = subprocess.run([aaep, "validate", recording], capture_output=True, text=True)
print(f"The public capture tool recorded {len(kinds)} events: {', '.join(kinds)}.")
expected = ["session.started", *["output.streaming"] * 3, "session.completed"]
if kinds != expected or judged.returncode != 0:
    print(judged.stdout, judged.stderr, sep="\n")
    sys.exit("The recording is not what was expected, or not valid.")
