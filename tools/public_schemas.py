"""Puts our schemas where the public suite looks for its own, which it ships without.

The suite's way of looking up `$ref` does not reach into `unevaluatedProperties`, so the envelope is written
into each event's schema in place of the reference to it. The meaning stays the same.
"""

import json
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
envelope = json.loads((folder / "envelope.schema.json").read_text())
plain = {key: value for key, value in envelope.items() if key not in ("$id", "$schema")}
for path in (folder / "core").glob("*.schema.json"):
    schema = json.loads(path.read_text())
    parts = [plain if part.get("$ref") == envelope["$id"] else part for part in schema["allOf"]]
    if parts == schema["allOf"]:
        sys.exit(f"{path} does not refer to the envelope.")
    schema["allOf"] = parts
    path.write_text(json.dumps(schema))
