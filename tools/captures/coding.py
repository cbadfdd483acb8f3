"""A coding agent that looks, edits and tests: storms of small tools, a failing test, a diff."""

from stage import Agent

FILES = ["queue.rs", "retry.rs", "clock.rs", "lib.rs", "error.rs", "worker.rs", "backoff.rs", "config.rs"]


def play(stage):
    agent = Agent(stage, "mender", "Mender", 7)
    agent.start("Looking into why retries never stop.")
    agent.state("thinking")
    agent.wait(2, 3)
    agent.say("I will start by finding where retries are counted.")
    agent.storm([("Grep", "Searching for retry_count", "14 matches in 5 files"),
                 ("Grep", "Searching for MAX_RETRIES", "2 matches in 1 file"),
                 ("Glob", "Listing crates/queue/src/*.rs", "8 files")])
    agent.wait(1, 2)
    agent.storm([("Read", f"Reading crates/queue/src/{name}", f"Read {name}, {80 + 37 * at} lines")
                 for at, name in enumerate(FILES)])
    agent.wait(3, 4)
    agent.say("The cause is in `retry.rs`: the count is read **before** the lock is taken, so two workers can both "
              "see the old value. `Backoff::next` then starts over at 50 ms. I will move the read inside the lock "
              "and add a test that runs eight workers at once.")
    agent.state("calling_tool")
    agent.call("Edit", "Editing crates/queue/src/retry.rs", "3 lines changed", (0.3, 0.5))
    agent.call("Edit", "Editing crates/queue/src/backoff.rs", "6 lines changed", (0.3, 0.5))
    agent.call("Write", "Writing crates/queue/tests/many_workers.rs", "41 lines written", (0.3, 0.5))
    agent.call("Bash", "Running cargo check -p queue", "Finished without warnings", (5, 6))
    agent.calls += 1
    call = {"tool": "Bash", "tool_call_id": f"call_{agent.calls}"}
    agent.tell("tool.invoked", **call, summary_normal="Running cargo test -p queue")
    for percent in range(0, 100, 4):
        agent.progress(percent, f"Test {percent * 212 // 100} of 212")
        agent.wait(0.5, 0.7)
    agent.tell("tool.completed", **call, status="error",
               error_message="1 of 212 tests failed: many_workers::eight_workers_count_to_five, left: 6, right: 5")
    agent.state("thinking")
    agent.wait(3, 4)
    agent.say("One failure, and it is a real one: `worker.rs` counts again when a job is put back. I take that out.")
    agent.call("Read", "Reading crates/queue/src/worker.rs", "Read worker.rs, 265 lines")
    agent.call("Edit", "Editing crates/queue/src/worker.rs", "2 lines changed", (0.3, 0.5))
    agent.call("Bash", "Running cargo test -p queue", "212 tests passed", (12, 14))
    agent.wait(1, 2)
    agent.say("""Retries stop after five now. What I changed:

```diff
--- a/crates/queue/src/retry.rs
+++ b/crates/queue/src/retry.rs
@@ -41,9 +41,9 @@ impl Retry {
     pub fn again(&self, job: JobId) -> Option<Duration> {
-        let count = self.counts.peek(job);
         let mut counts = self.counts.lock();
+        let count = counts.get(job);
         if count >= MAX_RETRIES {
             return None;
         }
```

- `retry.rs` reads the count under the lock.
- `backoff.rs` no longer starts over.
- `worker.rs` counts a job once when it is put back.

All 212 tests pass. The numbers are in `target/criterion/retry/report/index.html`.
""")
    agent.end("Retries stop after five. 3 files changed, 1 test added, all tests pass.")
