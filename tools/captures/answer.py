"""A long answer that streams: headings, a table, code, links, and then the same in short in German."""

from stage import Agent

ENGLISH = """## Why a write can be lost

A write is only safe once the disk says so. Between your program and the disk there are **three** places where it can \
stay: the buffer of your program, the cache of the system, and the cache of the disk itself.

| call | what it empties | typical time |
|------|-----------------|--------------|
| `flush` | the buffer of the program | 2 µs |
| `fsync` | the cache of the system and of the disk | 4 ms |
| `fdatasync` | the same, without times and sizes | 3 ms |

So this is not enough:

```rust
let mut file = File::create("state.tmp")?;
file.write_all(&bytes)?;
fs::rename("state.tmp", "state")?;
```

After a power cut the name can be there and the content not. The order that holds is:

1. Write to a second file in the same folder.
2. Call `sync_all` on it, and look at the result.
3. Rename it over the first one.
4. Call `sync_all` on the folder, so that the new name is on the disk too.

```rust
let mut file = File::create("state.tmp")?;
file.write_all(&bytes)?;
file.sync_all()?;
fs::rename("state.tmp", "state")?;
File::open(".")?.sync_all()?;
```

Three things often go wrong. An error of `fsync` is reported once and then forgotten by some systems, so a second call \
that succeeds proves nothing; treat the first error as final. Network file systems may not pass it on at all. And some \
disks lie about their cache, which only a test with a real power cut shows.

See the [manual page of fsync](https://man7.org/linux/man-pages/man2/fsync.2.html) and \
[what SQLite does](https://www.sqlite.org/atomiccommit.html) for the whole story.
"""

GERMAN = """Kurz auf Deutsch: Ein Schreibvorgang ist erst sicher, wenn die Platte ihn bestätigt hat. Schreiben Sie in eine \
zweite Datei, rufen Sie `sync_all` auf, benennen Sie die Datei um, und rufen Sie `sync_all` für den Ordner auf. Ein Fehler \
von `fsync` gilt als endgültig.
"""


def play(stage):
    agent = Agent(stage, "explainer", "Explainer", 11)
    agent.start("Explaining how to write a file so that it survives a power cut.")
    agent.state("thinking")
    agent.wait(3, 4)
    agent.call("web_search", "Searching for fsync and rename", "10 results", (1, 2))
    agent.storm([("web_fetch", "Fetching the manual page of fsync", "Fetched, 3 pages"),
                 ("web_fetch", "Fetching the page on atomic commit", "Fetched, 12 pages")])
    agent.wait(2, 3)
    agent.state("writing_output")
    agent.say(ENGLISH)
    agent.wait(1, 2)
    agent.say(GERMAN, language="de")
    agent.wait(0.5)
    agent.end("Explained in English, and in short in German.")
