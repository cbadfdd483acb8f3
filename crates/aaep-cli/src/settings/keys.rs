//! Every setting with its description: the list from which the file template and `aaep config show` are made.

#[derive(Debug, Clone, Copy)]
pub(crate) struct SettingKey {
    /// Its table and its name.
    pub(crate) table: &'static str,
    pub(crate) name: &'static str,
    /// What it is for.
    pub(crate) about: &'static str,
    /// Its default in TOML; or an example, if it has no default.
    pub(crate) value: SettingValue,
    /// The environment variable that sets it.
    pub(crate) variable: Option<&'static str>,
}

/// The default of a setting, or an example, in TOML.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SettingValue {
    Default(&'static str),
    /// An example for a setting without a default, and words for what applies without it.
    Example(&'static str, &'static str),
}

const fn key(
    table: &'static str,
    name: &'static str,
    about: &'static str,
    value: SettingValue,
) -> SettingKey {
    SettingKey { table, name, about, value, variable: None }
}

const fn with_variable(key: SettingKey, variable: &'static str) -> SettingKey {
    SettingKey { variable: Some(variable), ..key }
}

use SettingValue::{Default, Example};

/// All settings except the rules, in their order.
pub(crate) const KEYS: &[SettingKey] = &[
    with_variable(
        key(
            "listen",
            "hub",
            "Which hub: unix: is your own, by its socket. Several stand in brackets, with commas between.",
            Example("\"unix:\"", "your own hub"),
        ),
        "AAEP_HUB",
    ),
    with_variable(
        key(
            "listen",
            "profile",
            "How much is told: screen-reader, braille, captions, low-cognitive-load, quiet or debug.",
            Default("\"screen-reader\""),
        ),
        "AAEP_PROFILE",
    ),
    with_variable(
        key(
            "listen",
            "languages",
            "The languages in which you want to be told, best first.",
            Example("[\"en-GB\", \"fr\"]", "the language of each agent"),
        ),
        "AAEP_LANGUAGES",
    ),
    with_variable(
        key(
            "listen",
            "words_per_minute",
            "How fast you listen, from 20 to 2000.",
            Example("180", "as the profile has it"),
        ),
        "AAEP_WORDS_PER_MINUTE",
    ),
    key(
        "listen",
        "long_tool_seconds",
        "After how many seconds a tool that still runs is mentioned first; 0 for never.",
        Example("30", "as the profile has it"),
    ),
    key("lines", "on", "Plain lines in the terminal.", Default("true")),
    key(
        "lines",
        "bell",
        "Ring the bell of the terminal when an agent needs you.",
        Default("false"),
    ),
    key(
        "lines",
        "notifications",
        "Let the terminal notify you when an agent needs you: none, osc9 or osc777.",
        Default("\"none\""),
    ),
    key("speech", "on", "Speech through speech-dispatcher.", Default("false")),
    key(
        "speech",
        "address",
        "Where speech-dispatcher is.",
        Example("\"unix_socket:/run/user/1000/speech-dispatcher/speechd.sock\"", "its usual place"),
    ),
    key(
        "speech",
        "module",
        "Which synthesiser.",
        Example("\"espeak-ng\"", "that of speech-dispatcher"),
    ),
    key(
        "speech",
        "voice",
        "Which voice, as speech-dispatcher lists it.",
        Example("\"English (Great Britain)\"", "that of speech-dispatcher"),
    ),
    key(
        "speech",
        "rate",
        "How fast, from -100 to 100.",
        Example("20", "that of speech-dispatcher"),
    ),
    key(
        "speech",
        "pitch",
        "How high, from -100 to 100.",
        Example("0", "that of speech-dispatcher"),
    ),
    key(
        "speech",
        "volume",
        "How loud, from -100 to 100.",
        Example("0", "that of speech-dispatcher"),
    ),
    key("braille", "on", "A braille display through BRLTTY.", Default("false")),
    key("braille", "address", "Where BRLTTY is.", Example("\":0\"", "its usual place")),
    key(
        "braille",
        "key_file",
        "The key file of BRLTTY.",
        Example("\"/etc/brlapi.key\"", "the usual one"),
    ),
    key(
        "braille",
        "cells_per_second",
        "How many cells you read in a second, from 1 to 200; 0 if only your keys move on.",
        Default("10"),
    ),
    key(
        "braille",
        "tables",
        "Tables of liblouis for contracted braille, by language.",
        Example("{ en = \"en-ueb-g2.ctb\" }", "uncontracted braille"),
    ),
    key(
        "desktop",
        "on",
        "Let the screen reader of your desktop say it, and have buttons for answers.",
        Default("false"),
    ),
    key(
        "sounds",
        "on",
        "A sound before the words when an agent needs you, has finished, or failed.",
        Default("false"),
    ),
    key(
        "sounds",
        "needs_you",
        "A sound file of your own for: an agent needs you.",
        Example("\"/home/me/needs-you.wav\"", "our own sound"),
    ),
    key(
        "sounds",
        "done",
        "A sound file of your own for: an agent has finished.",
        Example("\"/home/me/done.wav\"", "our own sound"),
    ),
    key(
        "sounds",
        "error",
        "A sound file of your own for: something went wrong.",
        Example("\"/home/me/error.wav\"", "our own sound"),
    ),
];

const BEGINNING: &str = "\
# Your settings for aaep: what you hear, and how. Take the # away from a line to change what it says.
# Check it with: aaep config check. See what holds with: aaep config show.
";

const RULES: &str = "
# Rules answer questions for you, the first that fits. Each such answer is marked as automatic in the reply
# and in the audit log. What cannot be undone and is of more than low risk is never accepted by a rule, nor
# anything of which the agent does not say how risky it is and whether it can be undone.
#[[rules]]
#name = \"Moving photos\"       # what the rule is called
#agent = \"photos\"             # whose questions; photo* is every name that begins so
#tool = \"fs.move\"             # about which tool, likewise
#risk = \"low\"                 # up to which risk: low, medium or high
#reversible = true             # only what can be undone
#answer = \"accept\"            # accept or reject
#why = \"I can move them back.\"
";

/// A file that explains every setting and sets none.
pub(crate) fn template() -> String {
    let mut text = BEGINNING.to_owned();
    let mut table = "";
    for key in KEYS {
        if key.table != table {
            table = key.table;
            text.extend(["\n[", table, "]\n"]);
        }
        let (value, otherwise) = match key.value {
            Default(value) => (value, String::new()),
            Example(value, otherwise) => (value, format!(" Without it: {otherwise}.")),
        };
        text.extend(["# ", key.about, &otherwise, "\n#", key.name, " = ", value, "\n"]);
    }
    text.push_str(RULES);
    text
}
