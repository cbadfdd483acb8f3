"""Writes the types and the tables of the kit from the JSON Schemas that `aaep schema` writes.

python3 generate.py AAEP          writes src/aaep/messages.py and src/aaep/schemas.json
python3 generate.py AAEP --check  fails if they are not up to date
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

HERE = Path(__file__).parent / "src" / "aaep"
Schema = dict[str, Any]

HEAD = '''"""Every message of AAEP as a type. Written by generate.py from the schemas of `aaep schema`; do not edit."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union

'''


def named(name: str) -> str:
    """`agent.session.started` becomes `AgentSessionStarted`."""
    return "".join(part[:1].upper() + part[1:] for part in name.replace("_", ".").replace("-", ".").split("."))


class Writer:
    """Collects classes in the order in which they are needed."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.names: list[str] = []

    def type_of(self, schema: Schema, name: str) -> str:
        if "const" in schema or "enum" in schema:
            values: list[Any] = schema.get("enum", [schema.get("const")])
            return f"Literal[{', '.join(json.dumps(value) for value in values)}]"
        if "oneOf" in schema or "anyOf" in schema:
            options: list[Schema] = schema.get("oneOf") or schema["anyOf"]
            kinds = [self.type_of(option, f"{name}Option{at}") for at, option in enumerate(options, 1)]
            return f"Union[{', '.join(dict.fromkeys(kinds))}]"
        kind = schema.get("type")
        if kind == "array":
            return f"list[{self.type_of(schema.get('items', {}), name + 'Item')}]"
        if kind == "object" and schema.get("properties"):
            self.add(name, schema, [])
            return name
        plain = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict[str, Any]"}
        return plain.get(str(kind), "Any")

    def add(self, name: str, schema: Schema, bases: list[str]) -> None:
        properties: dict[str, Schema] = schema.get("properties", {})
        needed = set(schema.get("required", []))
        for key in sorted(properties):
            if not key.isidentifier():
                odd = f"{name}{named(key.strip('@'))}"
                hint = self.type_of(properties[key], odd + "Value")
                self.parts.append(f"{odd} = TypedDict({odd!r}, {{{key!r}: {hint!r}}}, total=False)\n")
                bases = [*bases, odd]
        required = {key: it for key, it in properties.items() if key in needed and key.isidentifier()}
        optional = {key: it for key, it in properties.items() if key not in needed and key.isidentifier()}
        described = str(schema.get("description", "")).replace("\\", "\\\\")
        if required:
            self.emit(f"{name}Needed", bases or ["TypedDict"], f"What `{name}` needs.", required, name, "")
            bases = [f"{name}Needed"]
        self.emit(name, bases or ["TypedDict"], described or f"Part of `{name}`.", optional, name, ", total=False")
        self.names.append(name)

    def emit(
        self, name: str, bases: list[str], described: str, fields: dict[str, Schema], owner: str, more: str
    ) -> None:
        lines = ["", "", f"class {name}({', '.join(bases)}{more}):", f'    """{described}"""']
        for key in sorted(fields):
            lines.append("")
            lines.append(f"    {key}: {self.type_of(fields[key], owner + named(key))}")
            if "description" in fields[key]:
                lines.append(f'    """{fields[key]["description"]}"""')
        self.parts.append("\n".join(lines) + "\n")


def types(schemas: dict[str, Schema]) -> str:
    writer = Writer()
    # A type cannot be narrowed in a subclass, so these two stand in each event.
    common = dict(schemas["envelope"]["properties"])
    urgency = common.pop("urgency")
    del common["type"]
    writer.add("Envelope", {**schemas["envelope"], "properties": common, "required": []}, [])
    core: list[str] = []
    for name in sorted(schemas):
        if name == "envelope":
            continue
        is_event = name.startswith("agent.")
        title = named(name.removeprefix("agent.") if is_event else name)
        schema = schemas[name]
        if is_event:
            schema = {**schema, "properties": {"urgency": urgency, **schema["properties"]}}
        writer.add(title, schema, ["Envelope"] if is_event else [])
        if is_event:
            core.append(title)
    union = "\n\nEvent = Union[\n" + "".join(f"    {name},\n" for name in core) + "]\n"
    union += '"""Any core event."""\n'
    exported = "\n\n__all__ = [\n" + "".join(f'    "{it}",\n' for it in sorted([*writer.names, "Event"])) + "]\n"
    return HEAD + "".join(writer.parts) + union + exported


KEPT = (
    "type enum const pattern minLength maxLength minimum maximum items minItems maxItems uniqueItems properties "
    "required additionalProperties oneOf"
).split()


def pruned(schema: Any) -> Any:
    """What a check before sending needs."""
    if not isinstance(schema, dict):
        return schema
    known = cast(Schema, schema)
    kept: Schema = {key: known[key] for key in KEPT if key in known}
    for key in ("items", "additionalProperties"):
        if key in kept:
            kept[key] = pruned(kept[key])
    if "properties" in kept:
        kept["properties"] = {key: pruned(it) for key, it in kept["properties"].items()}
    if "oneOf" in kept:
        kept["oneOf"] = [pruned(it) for it in kept["oneOf"]]
    return kept


def tables(schemas: dict[str, Schema]) -> str:
    events = {name: it for name, it in schemas.items() if name.startswith("agent.")}
    table = {name: {**pruned(it), "words": sorted(it.get("patternProperties", {}))} for name, it in events.items()}
    envelope = pruned(schemas["envelope"])
    return json.dumps({"envelope": envelope, "events": table}, indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def main() -> int:
    aaep = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([aaep, "schema", "--bundle", "--out", folder], check=True, stdout=subprocess.DEVNULL)
        root = Path(folder)
        schemas: dict[str, Schema] = {"envelope": json.loads((root / "envelope.schema.json").read_text())}
        for place in ("core", "handshake", "agentvoice", "extensions"):
            for file in sorted((root / place).glob("*.schema.json")):
                name = file.name.removesuffix(".schema.json")
                key = f"agentvoice.{name}" if place == "agentvoice" else name
                schemas[key] = json.loads(file.read_text())
    written = {HERE / "messages.py": types(schemas), HERE / "schemas.json": tables(schemas)}
    if "--check" in sys.argv:
        stale = [file.name for file, text in written.items() if not file.exists() or file.read_text() != text]
        if stale:
            print(f"Not up to date: {', '.join(stale)}. Run: python3 bindings/python/generate.py target/debug/aaep")
        return 1 if stale else 0
    for file, text in written.items():
        file.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
