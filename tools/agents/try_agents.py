"""Tries agents that people use, each with a real hub, a person who answers, and a model that claims what is not so.

Prints a line for each case, and with --table FILE the table of docs/agents-tried.md. Words after that choose cases by
their names.
"""

import sys
import tempfile
import time
import traceback
from functools import partial
from pathlib import Path

import cases
from cases import DOES_NOT_EXIST
from machine import CaseFailure, Model
from programs import ClaudeCode, Codex, GeminiCli, QwenCode

NAMES = {
    "no": "A no here",
    "yes": "A yes here",
    "keyboard": "Answered at the keyboard",
    "dialog": "Answered here while its window asks",
    "no hub": "No hub",
    "unasked": "Approved by a model or a setting",
    "later": "Answered after it ended",
    "question": "Its own question",
    "helper": "Helpers",
}

# Why there is no such case; see docs/bridges.md.
NO_DIALOG = "no dialog while we ask"
ONLY_WINDOW = "its window asks only after our yes"
NO_WINDOW = "the hooks are for `codex exec`, which has no window"
ALWAYS_WAITS = "it waits for the answer"


def hooks():
    """The cases of each agent through its hooks."""
    claude, codex, gemini, qwen = ClaudeCode(), Codex(), GeminiCli(), QwenCode()
    common = {"no": cases.rejected, "yes": cases.accepted, "no hub": cases.without_hub}
    return [
        (claude, common | {"keyboard": cases.at_keyboard, "dialog": cases.closes_dialog,
                           "unasked": cases.unasked_in_terminal, "later": cases.later, "question": cases.question,
                           "helper": cases.helper}),
        (codex, common | {"keyboard": NO_WINDOW, "dialog": NO_WINDOW, "unasked": cases.unasked,
                          "later": ALWAYS_WAITS}),
        (gemini, common | {"keyboard": partial(cases.at_keyboard, policy="tell", asks="cannot be answered from here"),
                           "dialog": ONLY_WINDOW, "unasked": cases.unasked, "later": ALWAYS_WAITS}),
        (qwen, common | {"keyboard": NO_DIALOG, "dialog": NO_DIALOG, "unasked": cases.unasked,
                         "later": ALWAYS_WAITS}),
    ]


def proxies():
    """The cases of each agent through `aaep acp`."""
    claude, codex, gemini, qwen = ClaudeCode(), Codex(), GeminiCli(), QwenCode()

    def all_of(mode, unasked):
        tried = {"no": cases.acp_rejected, "yes": cases.acp_accepted, "keyboard": cases.acp_in_editor,
                 "no hub": cases.acp_without_hub}
        tried = {name: partial(case, mode=mode) for name, case in tried.items()}
        return tried | {"unasked": unasked}

    return [
        (claude, all_of("default", partial(cases.acp_unasked, mode="auto"))),
        (codex, all_of("read-only", partial(cases.acp_unasked, mode="agent-full-access"))),
        (gemini, all_of("default", partial(cases.acp_unasked, mode="yolo"))),
        (qwen, all_of("default", partial(cases.acp_unasked, mode="yolo"))),
    ]


def attempt(model, label, agent, name, case):
    """One case. What came of it, and whether it is as it has to be."""
    if isinstance(case, str):
        print(f"  {label}, {name}: {DOES_NOT_EXIST}: {case}.", flush=True)
        return f"– ({case})", True
    began = time.monotonic()
    try:
        came = case(model, agent)
    except CaseFailure as failure:
        print(f"  {label}, {name}: FAILED: {failure}", flush=True)
        return "**failed**", False
    except Exception:
        print(f"  {label}, {name}: FAILED:\n{traceback.format_exc()}", flush=True)
        return "**failed**", False
    print(f"  {label}, {name}: {came}. {time.monotonic() - began:.1f} s", flush=True)
    return came, True


def table(rows, names, found):
    lines = ["| agent | version | " + " | ".join(NAMES[name] for name in names) + " |", "|---" * (len(names) + 2) + "|"]
    for label, version in rows:
        came = " | ".join(found.get((label, name), "not tried") for name in names)
        lines.append(f"| {label} | {version} | {came} |")
    return "\n".join(lines) + "\n"


def main():
    arguments = sys.argv[1:]
    place = Path(arguments[1]) if arguments[:1] == ["--table"] else None
    chosen = arguments[2:] if place else arguments
    found, is_well, tables = {}, True, []
    proxied = proxies()[0][1]
    with tempfile.TemporaryDirectory(prefix="aaep-model-") as folder:
        with Model(folder, [agent for agent, _ in hooks()]) as model:
            for kind, all_cases in [("hooks", hooks()), ("aaep acp", proxies())]:
                print(f"Through {kind}:", flush=True)
                rows = []
                for agent, tried in all_cases:
                    label = agent.name if kind == "hooks" else f"{agent.name} ({kind})"
                    rows.append((label, agent.version() if kind == "hooks" else agent.acp_version()))
                    for name, case in tried.items():
                        full = f"{kind} {agent.id} {name}"
                        if chosen and not any(word in full for word in chosen):
                            continue
                        found[label, name], is_right = attempt(model, label, agent, name, case)
                        is_well &= is_right
                names = [name for name in NAMES if kind == "hooks" or name in proxied]
                tables.append(table(rows, names, found))
    if place:
        place.write_text("\n".join(tables), encoding="utf-8")
    print("NOT CHECKED: OpenCode itself, because its bridge is not part of this check yet.")
    tried = sum(1 for came in found.values() if not came.startswith("–"))
    failed = sum(1 for came in found.values() if came == "**failed**")
    print(f"Agents: {tried - failed} of {tried} cases are as they have to be.")
    sys.exit(0 if is_well else 1)


main()
