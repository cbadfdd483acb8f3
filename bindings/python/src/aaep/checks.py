"""Checks an event at the call, before anything is sent, with the tables that are generated from our schemas.

The hub checks everything again. What is checked here is what an author can get wrong in a call: an unknown field, a
value of the wrong type, a text that nobody can see, a default that is not safe.
"""

from __future__ import annotations

import functools
import json
import re
from importlib import resources
from typing import Any, cast

from .errors import UnsafeDefault, WrongCall

Schema = dict[str, Any]

_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
}
_CALLED = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "True or False",
    "object": "a dict",
    "array": "a list",
}
MAX_CHUNK = 16_384
"""The most characters in one piece of text."""


@functools.cache
def tables() -> Schema:
    """The generated tables."""
    text = resources.files("aaep").joinpath("schemas.json").read_text("utf-8")
    return cast(Schema, json.loads(text))


@functools.cache
def _pattern(text: str) -> re.Pattern[str]:
    # A dollar sign would let a line break at the end pass.
    return re.compile(text.removesuffix("$") + r"\Z" if text.endswith("$") else text)


def check_event(name: str, fields: Schema) -> None:
    """Raises `WrongCall` if these are not fields of this event, or if what they hold is not what they should."""
    table = tables()
    event: Schema = table["events"][name]
    envelope: Schema = table["envelope"]["properties"]
    wrong: list[str] = []
    for key, value in fields.items():
        schema = event["properties"].get(key) or envelope.get(key)
        if schema is None:
            if any(_pattern(pattern).match(key) for pattern in event["words"]):
                _check(key, value, {"type": "string", "minLength": 1, "maxLength": MAX_CHUNK}, wrong)
                continue
            known = ", ".join(sorted(set(event["properties"]) - {"type"}))
            wrong.append(f"{name} has no field {key!r}. Use one of: {known}; or put your own data into extensions.")
            continue
        _check(key, value, schema, wrong)
    # The hub fills in all of these.
    filled = {"type", "urgency", "reply_token", "from_state", "position", "tool_call_id", "output_id"}
    missing = [key for key in event.get("required", []) if key not in fields and key not in filled]
    wrong.extend(f"{name} needs {key!r}. Add it." for key in missing)
    if wrong:
        raise WrongCall(" ".join(wrong))
    if name == "agent.awaiting.confirmation":
        _check_default(fields)


def _check_default(fields: Schema) -> None:
    """Silence may consent only to what is stated to be of low risk and reversible."""
    if fields["default_decision"] != "accept":
        return
    final = fields.get("irreversible"), fields.get("reversibility", "reversible")
    if fields.get("risk_level") != "low" or final != (False, "reversible"):
        raise UnsafeDefault(
            'Silence must not consent to this. Leave default at "reject", or state truthfully that it is '
            'harmless: risk="low" and irreversible=False.'
        )


def check_text(value: object, name: str, most: int = MAX_CHUNK) -> str:
    """A text that can be sent and seen."""
    wrong: list[str] = []
    _check(name, value, {"type": "string", "minLength": 1, "maxLength": most}, wrong)
    if wrong:
        raise WrongCall(" ".join(wrong))
    return cast(str, value)


def _check(place: str, value: object, schema: Schema, wrong: list[str]) -> None:
    if "const" in schema and value != schema["const"]:
        wrong.append(f"{place} is {_shown(value)}. Use {schema['const']!r}.")
        return
    if "enum" in schema:
        if value not in schema["enum"]:
            wrong.append(f"{place} is {_shown(value)}. Use one of: {', '.join(map(repr, schema['enum']))}.")
        return
    if "oneOf" in schema:
        options: list[Schema] = schema["oneOf"]
        tried: list[list[str]] = [[] for _ in options]
        for option, found in zip(options, tried):
            _check(place, value, option, found)
        if all(tried):
            wrong.extend(tried[0])
        return
    kind = schema.get("type")
    if kind is not None and not _is(value, kind):
        wrong.append(f"{place} is {_shown(value)} of the type {type(value).__name__}. Give {_CALLED[kind]}.")
    elif isinstance(value, str):
        _check_string(place, value, schema, wrong)
    elif isinstance(value, (int, float)):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            bounds = f"{schema.get('minimum', 'any')} to {schema.get('maximum', 'any')}"
            wrong.append(f"{place} is {value}. Give a number from {bounds}.")
    elif isinstance(value, dict):
        _check_object(place, cast(Schema, value), schema, wrong)
    elif isinstance(value, list):
        _check_list(place, cast("list[object]", value), schema, wrong)


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, float) and value != value:
        return False
    return isinstance(value, _TYPES[kind])


def _check_string(place: str, value: str, schema: Schema, wrong: list[str]) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        wrong.append(f"{place} has half of a surrogate pair, so it is not Unicode. Decode it correctly.")
        return
    if schema.get("minLength", 0) > 0 and not value.strip():
        wrong.append(f"{place} is empty, or nobody can see it. Say something, or leave it out.")
    elif len(value) > schema.get("maxLength", len(value)):
        wrong.append(f"{place} has {len(value)} characters, and at most {schema['maxLength']} fit. Shorten it.")
    elif "pattern" in schema and not _pattern(schema["pattern"]).search(value):
        wrong.append(f"{place} is {_shown(value)}, which does not have the form {schema['pattern']}.")


def _check_object(place: str, value: Schema, schema: Schema, wrong: list[str]) -> None:
    known: Schema = schema.get("properties", {})
    for key in schema.get("required", []):
        if key not in value:
            wrong.append(f"{place} needs {key!r}. Add it.")
    for key, member in value.items():
        if key in known:
            _check(f"{place}.{key}", member, known[key], wrong)
        elif schema.get("additionalProperties") is False:
            wrong.append(f"{place} has no field {key!r}. Use one of: {', '.join(sorted(known))}.")


def _check_list(place: str, value: list[object], schema: Schema, wrong: list[str]) -> None:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        bounds = f"{schema.get('minItems', 0)} to {schema.get('maxItems', 'any number of')}"
        wrong.append(f"{place} has {len(value)} items. Give {bounds}.")
    elif schema.get("uniqueItems") and len({json.dumps(it, sort_keys=True, default=str) for it in value}) < len(value):
        wrong.append(f"{place} has the same item twice. Name each once.")
    for at, item in enumerate(value):
        _check(f"{place}[{at}]", item, schema.get("items", {}), wrong)


def _shown(value: object) -> str:
    return ascii(value)[:100]
