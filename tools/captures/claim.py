"""A build that fails, and an agent that says that all is well; then an honest one beside it."""

from stage import Agent, at_once


def play(stage):
    fixer = Agent(stage, "fixer", "Fixer", 47)
    helper = Agent(stage, "helper", "Helper", 53)

    def fixing():
        fixer.start("Fixing how dates are read.")
        fixer.state("thinking")
        fixer.wait(1, 2)
        fixer.call("read_file", "Reading src/dates.rs", "212 lines", (0.3, 0.6))
        fixer.call("edit_file", "Changing src/dates.rs", "3 lines changed", (0.3, 0.6))
        fixer.call("shell", "Running cargo test", "test result: FAILED. 38 passed; 3 failed", (4, 5), status="error",
                   args_summary="cargo test")
        fixer.call("shell", "Running git add", "Done", (0.3, 0.6), args_summary="git add src/dates.rs")
        fixer.say("The dates are read in every form now. I ran cargo test and all 41 tests pass.\n")
        fixer.end("Dates are fixed, and all tests pass.")

    def helping():
        helper.start("Looking at the same tests.")
        helper.wait(6, 7)
        helper.call("shell", "Running cargo test", "3 tests failed", (3, 4), status="error", args_summary="cargo test")
        helper.say("Three tests failed: dates before 1970 are still read wrong. I changed nothing.\n")
        helper.end("3 of 41 tests fail.")

    at_once(fixing, helping)
