"""Runs the official conformance scenarios with and without aaep mcp. Every check must have the same result.

Server scenarios try a fixture for them behind a small gateway to HTTP; client scenarios try the official TypeScript
client. Whether a check passes is between the suite and these programs; here it only counts that the proxy changes none.
"""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

NODE, AAEP, HUB = os.environ["NODE"], os.environ["AAEP"], os.environ["AAEP_MCP_HUB"]
PACKAGES = Path(os.environ["MCP_PACKAGES"])
SUITE = PACKAGES / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
CLIENT_SCENARIOS = ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"]

# How long a client took is not a matter of right and wrong here; a slow machine fails it now and then.
TIMED = {"client-sse-retry-timing"}


def run(arguments, folder, **more):
    command = [NODE, str(SUITE), *arguments, "--output-dir", folder]
    subprocess.run(command, capture_output=True, timeout=600, check=False, **more)
    found = {}
    for file in sorted(Path(folder).rglob("checks.json")):
        # The folder of a scenario ends with the time of its run.
        scenario = file.parent.name.split("-20")[0]
        for check in json.loads(file.read_text(encoding="utf-8")):
            if check["status"] != "INFO" and check["id"] not in TIMED:
                key = (scenario, check["id"])
                found.setdefault(key, []).append(check["status"])
    return {key: sorted(results) for key, results in found.items()}


def report(name, direct, proxied):
    different = sorted(key for key in direct.keys() | proxied.keys() if direct.get(key) != proxied.get(key))
    for key in different:
        print(f"{name}: {' '.join(key)} is {direct.get(key)} directly and {proxied.get(key)} through aaep.")
    passed = sum(results.count("SUCCESS") for results in direct.values())
    checks = sum(len(results) for results in direct.values())
    print(f"{name}: {checks} checks, {passed} passed without aaep, {len(different)} different with it.")
    return bool(different) or passed == 0


@contextmanager
def served(command):
    """The address at which a program is served over HTTP."""
    gateway = [NODE, "gateway.mjs", *command]
    with subprocess.Popen(gateway, cwd=PACKAGES, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def server_scenarios(command):
    with tempfile.TemporaryDirectory() as folder, served(command) as url:
        return run(["server", "--url", url], folder)


def client_scenarios(is_proxied):
    found = {}
    command = f"{NODE} {PACKAGES / 'client.mjs'}"
    environment = {name: value for name, value in os.environ.items() if name != "AAEP_MCP"}
    if is_proxied:
        environment["AAEP_MCP"] = "1"
    for scenario in CLIENT_SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            wanted = ["client", "--command", command, "--scenario", scenario]
            found.update(run(wanted, folder, env=environment))
    return found


def main():
    server = [NODE, str(PACKAGES / "fixture.mjs")]
    proxy = [AAEP, "mcp", "--policy", "tell", "--hub", HUB]
    failed = report("client scenarios over HTTP", client_scenarios(False), client_scenarios(True))
    direct = server_scenarios(server)
    failed |= report("server scenarios", direct, server_scenarios([*proxy, "--", *server]))
    with served(server) as url:
        failed |= report("server scenarios over HTTP", direct, server_scenarios([*proxy, "--url", url]))
    sys.exit(1 if failed else 0)


main()
