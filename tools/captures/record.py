"""Records the sessions of examples/captures anew, through a real hub with `aaep capture`: each takes a minute or two.

python3 tools/captures/record.py AAEP FOLDER [NAME...]
"""

import importlib
import pathlib
import sys
import time

sys.dont_write_bytecode = True
from stage import Stage  # noqa: E402

SCENES = ["coding", "answer", "permissions", "three", "flood", "crossing", "claim"]

aaep, folder, *names = sys.argv[1:]
for name in names or SCENES:
    path = pathlib.Path(folder) / f"{name}.jsonl"
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    began = time.monotonic()
    with Stage(aaep, str(fresh)) as stage:
        importlib.import_module(name).play(stage)
    fresh.replace(path)
    print(f"{path}: {path.stat().st_size // 1000} KB in {time.monotonic() - began:.0f} seconds.")
