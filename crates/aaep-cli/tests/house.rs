//! The house: the invariants of ARCHITECTURE.md's crate table, headers, and traceable requirements.
//!
//! Each check goes red when someone breaks what the documents promise.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

#[path = "house/contributing.rs"]
mod contributing;
#[path = "house/english.rs"]
mod english;
#[path = "house/events_page.rs"]
mod events_page;
#[path = "house/names.rs"]
mod names;
#[path = "house/openapi.rs"]
mod openapi;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project's root")
}

/// Every file that belongs to the project, as git sees it or, outside git, as it lies there.
fn project_files() -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    match listed {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(PathBuf::from)
            .filter(|path| root().join(path).is_file())
            .collect(),
        _ => walk(&root())
            .into_iter()
            .map(|path| path.strip_prefix(root()).expect("inside").to_owned())
            .collect(),
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if name == "target" || name == ".git" {
            continue;
        }
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files
}

fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Which crates of this project each may depend on, tests aside.
const EDGES: &[(&str, &[&str])] = &[
    ("aaep", &[]),
    ("aaep-engine", &["aaep"]),
    ("aaep-http", &["aaep"]),
    ("aaep-transport", &["aaep", "aaep-http"]),
    ("aaep-trust", &["aaep", "aaep-http"]),
    ("aaep-hub", &["aaep", "aaep-engine", "aaep-http", "aaep-transport", "aaep-trust"]),
    ("aaep-subscriber", &["aaep", "aaep-engine", "aaep-transport", "aaep-trust"]),
    ("aaep-announce", &["aaep"]),
    ("aaep-bridge", &["aaep"]),
    ("aaep-conformance", &["aaep", "aaep-transport"]),
    ("aaep-sim", &["aaep", "aaep-engine"]),
    ("aaep-c", &["aaep", "aaep-subscriber"]),
];

/// The crates that decide and therefore touch nothing.
const PURE: &[&str] = &["aaep", "aaep-engine", "aaep-bridge"];

/// What a pure crate must not even reach through others.
const IMPURE_DEPENDENCIES: &[&str] =
    &["tokio", "mio", "socket2", "async-std", "smol", "rand", "getrandom", "fastrand", "chrono"];

struct Package {
    name: String,
    /// The crates it names itself, without those only for tests and builds.
    direct: BTreeSet<String>,
    /// All crates that get linked into it.
    all: BTreeSet<String>,
}

/// The kind of machine this is, so that only what is built here is looked at.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().expect("rustc");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.expect("rustc names its host").to_owned()
}

fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &host()])
        .current_dir(root())
        .output()
        .expect("cargo metadata");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    let list = |value: &serde_json::Value| value.as_array().expect("a list").clone();
    let names: BTreeMap<String, String> =
        list(&metadata["packages"]).iter().map(|it| (text(&it["id"]), text(&it["name"]))).collect();
    let edges: BTreeMap<String, Vec<String>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let is_linked = |dependency: &&serde_json::Value| {
                list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
            };
            let dependencies = list(&node["deps"]);
            let linked = dependencies.iter().filter(is_linked).map(|it| text(&it["pkg"])).collect();
            (text(&node["id"]), linked)
        })
        .collect();
    list(&metadata["workspace_members"])
        .iter()
        .map(text)
        .map(|id| {
            let mut all = BTreeSet::new();
            let mut waiting = edges[&id].clone();
            while let Some(next) = waiting.pop() {
                if all.insert(next.clone()) {
                    waiting.extend(edges[&next].clone());
                }
            }
            Package {
                name: names[&id].clone(),
                direct: edges[&id].iter().map(|it| names[it].clone()).collect(),
                all: all.iter().map(|it| names[it].clone()).collect(),
            }
        })
        .collect()
}

#[test]
fn crates_depend_only_as_the_table_says() {
    let packages = packages();
    for package in &packages {
        let Some((_, allowed)) = EDGES.iter().find(|(name, _)| *name == package.name) else {
            assert!(
                ["aaep-cli", "bench"].contains(&package.name.as_str()),
                "{} is not in the table of ARCHITECTURE.md",
                package.name
            );
            continue;
        };
        let ours: Vec<&String> =
            package.direct.iter().filter(|name| name.starts_with("aaep")).collect();
        for name in ours {
            assert!(allowed.contains(&name.as_str()), "{} must not depend on {name}", package.name);
        }
    }
    let judge = packages.iter().find(|package| package.name == "aaep-conformance");
    assert!(
        judge.is_none_or(|judge| !judge.all.contains("aaep-engine")),
        "a judge shares no code with the accused"
    );
}

#[test]
fn pure_crates_reach_no_clock_network_or_randomness() {
    for package in packages().iter().filter(|package| PURE.contains(&package.name.as_str())) {
        for impure in IMPURE_DEPENDENCIES {
            assert!(!package.all.contains(*impure), "{} reaches {impure}", package.name);
        }
        let rules = read(&Path::new("crates").join(&package.name).join("clippy.toml"));
        assert_eq!(
            rules,
            read(Path::new("crates/aaep/clippy.toml")),
            "the rules for pure crates are one list"
        );
        let manifest = read(&Path::new("crates").join(&package.name).join("Cargo.toml"));
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{} must obey the lints",
            package.name
        );
        for file in project_files()
            .iter()
            .filter(|path| path.starts_with(Path::new("crates").join(&package.name).join("src")))
        {
            let text = read(file);
            for lint in ["disallowed_methods", "disallowed_types", "disallowed_macros"] {
                assert!(!text.contains(lint), "{} switches {lint} off", file.display());
            }
        }
    }
}

/// What deciding files must not even name.
const IMPURE_NAMES: &[&str] = &[
    "std::fs",
    "std::net",
    "std::thread",
    "std::process",
    "std::env",
    "Instant",
    "SystemTime",
    "RandomState",
    "HashMap",
    "HashSet",
];

#[test]
fn what_is_announced_is_decided_without_touching_anything() {
    let crate_folder = Path::new("crates/aaep-announce/src");
    let is_device = |path: &Path| {
        path.starts_with(crate_folder.join("device")) || path == crate_folder.join("device.rs")
    };
    let files: Vec<PathBuf> =
        project_files().into_iter().filter(|path| path.starts_with(crate_folder)).collect();
    let deciding: Vec<&PathBuf> = files.iter().filter(|path| !is_device(path)).collect();
    assert!(deciding.len() > 10 && deciding.len() < files.len(), "the folders are where they were");
    for file in deciding {
        let text = read(file);
        for name in IMPURE_NAMES {
            assert!(!text.contains(name), "{} decides and names {name}", file.display());
        }
    }
}

#[test]
fn the_lints_against_impurity_really_bite() {
    // The list names paths that exist and covers time, files, network, processes and randomness.
    let rules: toml::Value =
        toml::from_str(&read(Path::new("crates/aaep/clippy.toml"))).expect("TOML");
    let paths: Vec<&str> = ["disallowed-methods", "disallowed-types", "disallowed-macros"]
        .iter()
        .flat_map(|key| rules[*key].as_array().expect("a list"))
        .map(|entry| entry["path"].as_str().expect("a path"))
        .collect();
    for needed in [
        "std::time::Instant",
        "std::time::SystemTime",
        "std::fs::File",
        "std::net::TcpStream",
        "std::process::Command",
        "std::hash::RandomState",
    ] {
        assert!(paths.contains(&needed), "{needed} is not on the list");
    }
    let workspace = read(Path::new("Cargo.toml"));
    assert!(workspace.contains("all = { level = \"warn\", priority = -1 }"));
    assert!(
        read(Path::new("test"))
            .contains("cargo clippy --workspace --all-targets --locked -- -D warnings")
    );
}

#[test]
fn unsafe_code_is_in_the_c_binding_alone() {
    assert!(read(Path::new("Cargo.toml")).contains("unsafe_code = \"forbid\""));
    for path in project_files() {
        let name = path.to_string_lossy().into_owned();
        let is_binding = ["bindings/c/src/abi.rs", "bindings/c/tests/abi.rs"].contains(&&*name);
        if name.ends_with("Cargo.toml") && name != "Cargo.toml" && !name.starts_with("fuzz/") {
            let obeys = read(&path).contains("[lints]\nworkspace = true");
            assert!(obeys || name == "bindings/c/Cargo.toml", "{name} must obey the lints");
        }
        // The word is put together here, so that this file does not find itself.
        let allows = ["expect", "allow"].map(|word| format!("{word}(unsafe_code"));
        if path.extension().is_some_and(|it| it == "rs") && !is_binding {
            let text = read(&path);
            assert!(!allows.iter().any(|it| text.contains(it)), "{name} allows unsafe code");
        }
    }
}

#[test]
fn every_file_says_what_it_is() {
    for path in project_files() {
        let name = path.to_string_lossy().into_owned();
        let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
        let opens_with = match extension {
            "rs" => "//!",
            "toml" | "yml" | "yaml" => "#",
            // Forms to fill in open with what the site that shows them wants.
            "md" if name.starts_with(".github/") => continue,
            "md" => "# ",
            "py" => "\"\"\"",
            "c" | "h" => "/* ",
            "" if ["test", ".ci/run", "tools/check-schemas"].contains(&name.as_str()) => "#!",
            _ => continue,
        };
        let text = read(&path);
        assert!(text.starts_with(opens_with), "{name} must open with {opens_with}");
        if opens_with == "#!" {
            assert!(
                text.lines().nth(1).is_some_and(|line| line.starts_with("# ")),
                "{name} must say what it is"
            );
        }
    }
}

#[test]
fn no_file_grows_past_what_a_reader_can_hold() {
    for path in project_files().iter().filter(|path| path.extension().is_some_and(|it| it == "rs"))
    {
        let lines = read(path).lines().count();
        assert!(lines <= 700, "{} has {lines} lines: split it", path.display());
    }
}

#[test]
fn what_is_skipped_is_told_as_skipped() {
    // Without the documents that they read, these tests must not pass as if they had checked something.
    let seeds = read(Path::new("crates/aaep/tests/seeds.rs"));
    assert_eq!(seeds.matches("#[test]\n#[ignore = ").count(), seeds.matches("#[test]").count());
    let all = read(Path::new("test"));
    for needed in ["step \"seed documents\" seeds\n", "\nreport_not_checked\n", "tee -a \"$log\""] {
        assert!(all.contains(needed), "./test lacks {needed:?}");
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirements {
    chapters: BTreeMap<String, Counts>,
    requirement: Vec<Requirement>,
}

/// How many requirements a chapter has, by keyword.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counts {
    must: usize,
    must_not: usize,
    should: usize,
    should_not: usize,
}

impl Counts {
    /// The number that belongs to a keyword, if it is one.
    fn of(&mut self, keyword: &str) -> Option<&mut usize> {
        match keyword {
            "MUST" => Some(&mut self.must),
            "MUST NOT" => Some(&mut self.must_not),
            "SHOULD" => Some(&mut self.should),
            "SHOULD NOT" => Some(&mut self.should_not),
            _ => None,
        }
    }
}

/// The front page, the chapters and the appendices of the specification.
const CHAPTERS: &[&str] =
    &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "A", "B", "C", "D"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    id: String,
    section: String,
    keyword: String,
    who: String,
    text: String,
    by: String,
    why: Option<String>,
    ruling: Option<u64>,
    tests: Vec<String>,
    waits_for: Option<String>,
}

fn requirements_file() -> Requirements {
    let text = read(Path::new("docs/requirements.toml"));
    toml::from_str(&text).expect("docs/requirements.toml")
}

fn requirements() -> Vec<Requirement> {
    requirements_file().requirement
}

/// Whether `file::name` is a test that runs.
fn is_test(name: &str) -> bool {
    let Some((file, function)) = name.rsplit_once("::") else { return false };
    let Ok(text) = fs::read_to_string(root().join(file)) else { return false };
    let signature = format!("fn {function}(");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.iter().enumerate().any(|(at, line)| {
        let attributes = lines[..at]
            .iter()
            .rev()
            .take_while(|line| line.starts_with('#') || line.starts_with("//"));
        line.trim_start_matches("async ").starts_with(&signature)
            && attributes.clone().any(|line| line.contains("test]") || line.contains("test("))
            && !attributes.clone().any(|line| line.contains("ignore"))
    })
}

/// Whom a requirement binds.
const WHO: &[&str] =
    &["producer", "subscriber", "both", "transport", "suite", "extension", "specification"];

#[test]
fn every_requirement_names_tests_that_exist() {
    let mut ids = BTreeSet::new();
    for it in requirements() {
        assert!(ids.insert(it.id.clone()), "{} stands twice", it.id);
        assert!(
            it.id.starts_with(&format!("{}-", it.section)),
            "{}: the id starts with the section",
            it.id
        );
        assert!(WHO.contains(&it.who.as_str()), "{}: it binds nobody that we know", it.id);
        assert!(it.text.ends_with('.'), "{}", it.id);
        assert!(it.ruling.is_none_or(|ruling| (1..=38).contains(&ruling)), "{}", it.id);
        for test in &it.tests {
            assert!(is_test(test), "{}: there is no test {test}", it.id);
        }
    }
}

#[test]
fn no_requirement_of_any_chapter_got_lost() {
    let file = requirements_file();
    let mut found: BTreeMap<String, Counts> =
        CHAPTERS.iter().map(|it| ((*it).to_owned(), Counts::default())).collect();
    for it in &file.requirement {
        let chapter = it.section.split('.').next().unwrap_or_default();
        let counts = found.get_mut(chapter);
        let counts = counts.unwrap_or_else(|| panic!("{}: there is no such chapter", it.id));
        *counts.of(&it.keyword).unwrap_or_else(|| panic!("{}: no keyword", it.id)) += 1;
    }
    assert_eq!(
        found, file.chapters,
        "found on the left, counted at the top of the file on the right"
    );
}

#[test]
fn every_must_names_a_test_or_the_part_that_it_waits_for() {
    let mut open = Vec::new();
    for it in requirements() {
        if it.by == "document" {
            assert!(it.why.is_some(), "{}: say why no code can carry it", it.id);
            continue;
        }
        assert!(
            EDGES.iter().any(|(name, _)| *name == it.by),
            "{}: {} is no crate of the table",
            it.id,
            it.by
        );
        assert!(
            it.waits_for.is_none() || it.tests.is_empty(),
            "{}: it has tests and waits no more",
            it.id
        );
        if it.keyword.starts_with("MUST") && it.waits_for.is_none() && it.tests.is_empty() {
            open.push(format!("{} {}", it.id, it.text));
        }
    }
    assert!(open.is_empty(), "these MUSTs name no test:\n{}", open.join("\n"));
}

#[test]
fn a_test_that_does_not_exist_is_noticed() {
    assert!(is_test("crates/aaep-cli/tests/house.rs::a_test_that_does_not_exist_is_noticed"));
    assert!(!is_test("crates/aaep-cli/tests/house.rs::is_test"));
    assert!(!is_test("crates/aaep-cli/tests/house.rs::no_such_test"));
    assert!(!is_test("crates/aaep-cli/tests/no_such_file.rs::a_test"));
}

/// Code, section and advice of each way to break the order, from the table in the source.
fn order_codes() -> Vec<[String; 3]> {
    let source = read(Path::new("crates/aaep-engine/src/order/violation.rs"));
    let rows = source.lines().filter(|line| line.contains("=> (\""));
    rows.map(|row| {
        let mut texts = row.split('"').skip(1).step_by(2).map(str::to_owned);
        std::array::from_fn(|_| texts.next().expect("name, section and advice"))
    })
    .collect()
}

/// The page that lists every code, as the code has it.
fn page_of_codes() -> String {
    let mut page = String::from(
        "# What can be wrong with a message\n\n\
         `aaep validate` names each problem with one of these codes. They are stable: a code keeps its name\n\
         and its meaning. The section is that of the specification; a field may name a nearer one.\n\n\
         | code | section | meaning | what to do |\n|---|---|---|---|\n",
    );
    for code in aaep::Code::ALL {
        let cells = [code.name(), code.section(), code.meaning(), code.advice()];
        let row = cells.map(|cell| cell.replace('|', "\\|")).join(" | ");
        page.extend(["| ", &row, " |\n"]);
    }
    page.push_str(
        "\n## What can be wrong with the order of a session\n\n\
         These concern several events of a session, so they are found in a stream of messages only.\n\n\
         | code | section | what to do |\n|---|---|---|\n",
    );
    for row in order_codes() {
        page.extend(["| ", &row.join(" | "), " |\n"]);
    }
    page.push_str(
        "\nThe note `order_not_judged` says that no session starts in the input, so that each event was judged by\n\
         itself. `--order` judges the order all the same. The note `hub_fills_in` says which missing fields and\n\
         ids of another form a hub takes care of when an agent publishes the event.\n",
    );
    page.push_str(
        "\n## What a JSON Schema cannot say\n\n\
         The schemas that `aaep schema` writes come from the same declarations as the checks. These rules are\n\
         beyond them, so a message that breaks only these passes the schemas:\n\n",
    );
    for (code, why) in aaep::BEYOND_SCHEMA {
        page.extend(["- `", code.name(), "`: ", why, "\n"]);
    }
    page
}

#[test]
fn the_page_of_codes_is_true() {
    is_page_true(Path::new("docs/violations.md"), &page_of_codes());
}

fn add(to: &mut String, text: &str) {
    to.push_str(text);
}

/// Whether a page says what it should; with `AAEP_WRITE_DOCS` set, it is written first.
fn is_page_true(path: &Path, expected: &str) {
    if std::env::var_os("AAEP_WRITE_DOCS").is_some() {
        fs::write(root().join(path), expected).expect("the page is written");
    }
    let page = read(path);
    let differs = page.lines().zip(expected.lines()).find(|(is, should)| is != should);
    assert!(
        page == expected,
        "{} is not what the declarations say, first at {differs:?}. \
         Run: AAEP_WRITE_DOCS=1 cargo test -p aaep-cli --test house",
        path.display()
    );
}
