"""Judges our samples with our schemas, in Python's jsonschema: a second opinion on both.

Every message of the good samples must pass; of broken.jsonl every one must fail. The bundled schema for
any message is used as it stands, without the others. Prints what it did.
"""

import json
import pathlib
import sys

import jsonschema

schema_dir, sample_dir, bundle = map(pathlib.Path, sys.argv[1:4])
any_message = jsonschema.Draft202012Validator(json.loads(bundle.read_text()))
schemas = [json.loads(path.read_text()) for path in sorted(schema_dir.rglob("*.json"))]
store = {schema["$id"]: schema for schema in schemas}
base = "https://aaep-protocol.org/schemas/v1/"


def schema_of(message):
    name = message.get("type", "")
    if name.startswith("aaep:agent."):
        return store[f"{base}core/{name[5:]}.schema.json"]
    if name.startswith("aaep:"):
        return store[f"{base}{name[5:]}.schema.json"]
    if name.startswith("agentvoice:"):
        title = name.replace(":", " ")
        return next(schema for schema in schemas if schema["title"] == title)
    return store[f"{base}handshake/{name}.schema.json"]


def is_valid(text):
    try:
        message = json.loads(text)
    except json.JSONDecodeError:
        return False
    schema = schema_of(message)
    resolver = jsonschema.RefResolver(schema["$id"], schema, store=store)
    validator = jsonschema.Draft202012Validator(schema, resolver=resolver)
    return validator.is_valid(message) and any_message.is_valid(message)


for schema in schemas:
    jsonschema.Draft202012Validator.check_schema(schema)

good = (sample_dir / "session.jsonl").read_text().splitlines()
good += (sample_dir / "messages.jsonl").read_text().splitlines()
good.append((sample_dir / "manifest.json").read_text())
wrong = [text for text in good if not is_valid(text)]
passed = [text for text in (sample_dir / "broken.jsonl").read_text().splitlines() if is_valid(text)]
passed += [text for text in good if any_message.is_valid({**json.loads(text), "colour": "red"})]
# The undeclared prefix and its like are beyond a schema; the sample has another fault on each line.
for text in wrong:
    print("should be valid:", text)
for text in passed:
    print("should not be valid:", text)
print(f"{len(schemas)} schemas are well-formed, {len(good)} good messages judged with them.")
sys.exit(1 if wrong or passed or not schemas else 0)
