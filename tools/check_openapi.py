"""Judges docs/openapi.yaml: the document itself, and every example in it.

An example is held to the schema beside it. A message of the protocol is also given to `aaep validate`, an
event after what the hub fills in is filled in. Prints how many were judged; none at all is a failure.
"""

import json
import subprocess
import sys

import jsonschema
import yaml
from openapi_spec_validator import validate

page, aaep = sys.argv[1:3]
with open(page, encoding="utf-8") as file:
    # Dates stay text: JSON has none.
    loader = type("Loader", (yaml.SafeLoader,), {})
    loader.yaml_implicit_resolvers = {
        first: [(tag, it) for tag, it in pairs if tag != "tag:yaml.org,2002:timestamp"]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    document = yaml.load(file, Loader=loader)

validate(document)

FILLED_IN = {
    "@context": "https://aaep-protocol.org/context/v1",
    "event_id": "evt_FilledIn",
    "session_id": "sess_FilledIn",
    "timestamp": "2026-11-02T06:20:00.000Z",
}
START = {"type": "aaep:agent.session.started", "summary_normal": "It begins."}


def examples(node, path=""):
    """Every media type with examples, wherever it stands."""
    if isinstance(node, dict):
        if "schema" in node and "examples" in node:
            for name, example in node["examples"].items():
                yield f"{path}: {name}", node["schema"], example["value"]
        for key, value in node.items():
            yield from examples(value, f"{path}/{key}")
    elif isinstance(node, list):
        for at, value in enumerate(node):
            yield from examples(value, f"{path}/{at}")


def filled(message):
    """An event as the hub takes it; any other message as it is."""
    if not message["type"].startswith("aaep:agent."):
        return message
    event = {**FILLED_IN, **message}
    if ".awaiting." in event["type"]:
        event.setdefault("reply_token", "rpl_FilledIn")
        event.setdefault("urgency", "critical")
    return event


def stream(message):
    """The message, after the start of its session where it needs one."""
    event = filled(message)
    lines = [event]
    if event["type"].startswith("aaep:agent.") and event["type"] != START["type"]:
        lines.insert(0, {**FILLED_IN, **START, "event_id": "evt_Start", "session_id": event["session_id"],
                         "producer": event["producer"]})
    return "\n".join(map(json.dumps, lines))


def messages(value):
    """The messages of the protocol in an example."""
    if isinstance(value, str):
        return [json.loads(line) for line in value.splitlines()]
    return [value] if isinstance(value, dict) and "type" in value else []


wrong = []
judged = 0
seen = {"request": [], "answer": []}
for place, schema, value in examples(document):
    judged += 1
    whole = {**schema, "components": document["components"]}
    for error in jsonschema.Draft202012Validator(whole).iter_errors(value):
        wrong.append(f"{place}: {error.message}")
    kind = "request" if "requestBody" in place else "answer"
    seen[kind] += [(place, message) for message in messages(value)]

for place, message in seen["request"] + seen["answer"]:
    run = subprocess.run([aaep, "validate", "-"], input=stream(message),
                         capture_output=True, text=True)
    if run.returncode != 0:
        wrong.append(f"{place}: {run.stdout}{run.stderr}")

for problem in wrong:
    print("wrong:", problem)
requests = len(seen["request"])
print(f"{judged} examples judged by their schemas, {requests} messages of requests and "
      f"{len(seen['answer'])} of answers by aaep validate.")
sys.exit(1 if wrong or requests < 10 else 0)
