"""Three agents at once, each an hour of work in less than two minutes: progress, errors, one that fails, one question."""

from stage import Agent, at_once


def play(stage):
    builder = Agent(stage, "builder", "Builder", 13)
    writer = Agent(stage, "writer", "Writer", 17)
    watcher = Agent(stage, "watcher", "Watcher", 19)

    def building():
        builder.start("Building release 4.2 for four systems.")
        for at, system in enumerate(["Linux", "Windows", "macOS", "FreeBSD"]):
            builder.calls += 1
            call = {"tool": "build", "tool_call_id": f"call_{builder.calls}"}
            builder.tell("tool.invoked", **call, summary_normal=f"Building for {system}")
            for percent in range(0, 100, 10):
                builder.progress(at * 25 + percent // 4, f"{system}, {percent} percent")
                builder.wait(0.8, 1.2)
            if system == "macOS":
                builder.tell("tool.completed", **call, status="timeout",
                             error_message="The signing service did not answer for 60 seconds")
                builder.wait(1, 2)
                builder.call("build", "Building for macOS again", "Built and signed", (6, 8))
            else:
                builder.tell("tool.completed", **call, status="success", summary_normal=f"Built for {system}")
        stage.after(12, stage.types, "yes")
        outcome = builder.confirm("Publish release 4.2.", "Everyone gets it with the next update.", risk_level="medium",
                                  reversibility="reversible_with_effort", timeout_seconds=120)
        assert outcome == "accept"
        builder.call("publish", "Publishing release 4.2", "Published in 4 places", (3, 4), risk_level="medium")
        builder.end("Release 4.2 is published for four systems.")

    def writing():
        writer.start("Writing the notes for release 4.2.")
        writer.state("thinking")
        writer.wait(2, 3)
        writer.storm([("read_file", f"Reading changes/{number}.md", None) for number in range(418, 430)])
        writer.wait(3, 4)
        writer.say("# Release 4.2\n\nThis release makes searching faster and fixes how times are shown.\n\n"
                   "- Searching in large folders takes a third of the time.\n"
                   "- Times are shown in your own time zone, also in exports.\n"
                   "- A crash is fixed that came when a name had more than 255 bytes.\n")
        writer.wait(12, 14)
        writer.storm([("read_file", f"Reading changes/{number}.md", None) for number in range(430, 436)])
        writer.say("Two things have to be done before you update: close the old version, and make room for 300 MB.\n")
        writer.end("The notes are in docs/releases/4.2.md, 61 lines.")

    def watching():
        watcher.start("Watching the test servers.")
        for minute in range(9):
            watcher.storm([("http_get", f"Asking server {server} how it is", None) for server in (1, 2, 3)])
            if minute == 3:
                watcher.call("http_get", "Asking server 2 again", "503 Service Unavailable", status="error")
            watcher.wait(5, 6)
        watcher.call("restart_service", "Restarting server 2", "Permission denied", (2, 3), status="error")
        watcher.wait(1, 2)
        watcher.fail("requires_user", "Server 2 does not answer and could not be restarted.",
                     "Restart it by hand, or allow the watcher to do it.")

    at_once(building, writing, watching)
