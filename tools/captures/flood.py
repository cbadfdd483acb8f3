"""A flood: one agent pours out the log of a build, line by line, another writes, a third ends, and one question comes in
the middle of it all."""

from stage import Agent, at_once

PARTS = ["parser", "printer", "planner", "router", "reader", "writer", "cache", "clock", "index", "queue"]
VERBS = ["Compiling", "Linking", "Checking", "Packing", "Signing"]


def play(stage):
    builder = Agent(stage, "builder", "Builder", 23)
    writer = Agent(stage, "writer", "Writer", 29)
    sorter = Agent(stage, "sorter", "Sorter", 31)

    def pouring():
        builder.start("Building everything anew.")
        builder.state("calling_tool")
        for number in range(1, 151):
            builder.outputs += 1
            part, verb = PARTS[number % len(PARTS)], VERBS[(number - 1) // 30]
            line = (f"{verb} {part} {number} of 150, with {number * 7 % 90 + 10} files changed since the build before "
                    f"and {number * 13 % 40} taken as they are.\n")
            builder.tell("output.streaming", output_id=f"out_{builder.outputs}", chunk=line, position=0, complete=True)
            builder.wait(0.15, 0.25)
            if number % 10 == 0:
                builder.progress(number * 2 // 3, f"{number} of 150")
            if number == 75:
                stage.after(14, stage.types, "no")
                outcome = builder.confirm("Delete the cache of all builds.", "The next build takes an hour.",
                                          risk_level="high", irreversible=True, timeout_seconds=60)
                assert outcome == "reject", outcome
        builder.end("Built 150 parts. The cache was kept.")

    def writing():
        writer.start("Writing the plan for next week.")
        writer.wait(3)
        for day in ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]:
            writer.say(f"On {day} we look at what came in over night, sort it by how many people it keeps from their work, "
                       "and fix the first three. Whatever is left waits for the next day, and is told to those who asked. ")
            writer.wait(1, 2)
        writer.end("The plan is in plan.md.")

    def sorting():
        sorter.start("Sorting the photos.")
        sorter.call("move_file", "Moving the photos of May", "Moved 214 photos", (9, 10))
        sorter.end("All 214 photos are sorted.")

    at_once(pouring, writing, sorting)
