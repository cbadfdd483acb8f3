"""Times json.loads and jsonschema on the events in the folder that is given.

Run by the benchmark, which writes the folder and reads the JSON that this prints. Formats are not
checked, which only makes Python faster.
"""

import json
import pathlib
import platform
import sys
import time
from importlib.metadata import version

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

# One event of Python's takes about as long as a batch of ours, so that a machine that is busy with
# other things interrupts both about as often.
ROUNDS = 1000


def main():
    folder = pathlib.Path(sys.argv[1])
    schemas = json.loads((folder / "schemas.json").read_bytes())
    events = json.loads((folder / "events.json").read_bytes())
    registry = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in schemas
    )
    by_id = {schema["$id"]: schema for schema in schemas}
    subjects = [
        (
            event["text"].encode(),
            Draft202012Validator(by_id[event["schema"]], registry=registry),
            [],
        )
        for event in events
    ]
    # A validator that takes everything would be fast and worth nothing.
    assert not any(validator.is_valid({}) for _, validator, _ in subjects)
    for turn in range(ROUNDS + 1):
        for text, validator, times in subjects:
            start = time.perf_counter_ns()
            validator.validate(json.loads(text))
            elapsed = time.perf_counter_ns() - start
            if turn > 0:
                times.append(elapsed)
    results = []
    for _, _, times in subjects:
        times.sort()
        results.append(
            {
                "median_ns": times[(len(times) - 1) * 50 // 100],
                "p99_ns": times[(len(times) - 1) * 99 // 100],
            }
        )
    answer = {
        "python": platform.python_version(),
        "jsonschema": version("jsonschema"),
        "events": results,
    }
    print(json.dumps(answer))


main()
