//! Holds the types and the schemas together: over thousands of documents, both must say the same.
//!
//! Documents of every kind of message are made by walking our own schemas and then broken in up to
//! three ways; what the schemas refuse the types must refuse, and what only the types refuse must
//! be listed in `aaep::BEYOND_SCHEMA`, for the reason given there. The reports name each document
//! in its smallest form and both verdicts. `AAEP_SEED` and `AAEP_CASES` vary the run.
//!
//! It never touches a network, a clock or a file, and never says which side is right.

#[path = "agreement/generator.rs"]
mod generator;
#[path = "agreement/judge.rs"]
mod judge;
#[path = "agreement/mutation.rs"]
mod mutation;
#[path = "agreement/probe.rs"]
mod probe;
#[path = "agreement/rng.rs"]
mod rng;
#[path = "agreement/sabotage.rs"]
mod sabotage;
#[path = "agreement/samples.rs"]
mod samples;

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use aaep::{BEYOND_SCHEMA, Code, Mode, SchemaFile, Violation, schemas};
use generator::{Case, Generator};
use judge::{Judge, Verdicts, difference, shrink};
use sabotage::Sabotage;
use serde_json::Value as Json;

const SEED: u64 = 0x0aae_0001;
const CASES: u64 = 13_500;

/// What all tests share, made once.
struct Harness {
    files: Vec<SchemaFile>,
    generator: Generator,
    judge: Judge,
    probes: Vec<Case>,
}

static HARNESS: LazyLock<Harness> = LazyLock::new(|| {
    let files = schemas();
    let generator = Generator::new(&files);
    Harness { judge: Judge::new(&files), probes: generator.probes(), generator, files }
});

#[expect(clippy::disallowed_methods, reason = "a test has no other arguments")]
fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Judges the probes and so many random cases, and gives each to `look`.
fn judge_cases(probes: &[Case], (seed, cases): (u64, u64), mut look: impl FnMut(&Case, &Verdicts)) {
    let Harness { generator, judge, .. } = &*HARNESS;
    for case in probes {
        look(case, &judge.hear(case));
    }
    for number in 0..cases {
        let case = generator.case(seed, number);
        look(&case, &judge.hear(&case));
    }
}

#[test]
fn types_and_schemas_say_the_same() {
    let seed = from_environment("AAEP_SEED", SEED);
    let cases = from_environment("AAEP_CASES", CASES);
    let Harness { generator, judge, probes, .. } = &*HARNESS;
    let mut found = BTreeMap::new();
    judge_cases(probes, (seed, cases), |case, verdicts| {
        if let Some(difference) = difference(verdicts, &case.document, generator) {
            let kind = format!("{difference:?} at {}", judge.place_of(&difference, case, verdicts));
            found.entry(kind).or_insert_with(|| (case.clone(), difference));
        }
    });
    let reports: Vec<String> = found
        .into_values()
        .take(40)
        .map(|(case, difference)| shrink(case, &difference, judge, generator).to_string())
        .collect();
    assert!(
        reports.is_empty(),
        "over {} probes and {cases} cases of AAEP_SEED={seed} the sides differ in {} ways:\n\n{}",
        probes.len(),
        reports.len(),
        reports.join("\n")
    );
}

#[test]
fn valid_and_invalid_documents_of_every_kind_are_tried() {
    let mut seen = BTreeMap::<String, [u32; 2]>::new();
    let mut codes = HashSet::new();
    judge_cases(&[], (SEED, 10_000), |case, verdicts| {
        seen.entry(case.target.clone()).or_default()[usize::from(verdicts.types_accept())] += 1;
        codes.extend(verdicts.errors.iter().map(|error| error.code));
    });
    let total: [u32; 2] =
        seen.values().fold([0, 0], |sum, some| [sum[0] + some[0], sum[1] + some[1]]);
    let all = total[0] + total[1];
    assert!(total.iter().all(|some| some * 5 > all), "invalid and valid: {total:?} of {all}");
    assert_eq!(
        seen.len(),
        31,
        "12 events, an extension's, 7 messages, the manifest, our extension with its 9"
    );
    for (target, [invalid, valid]) in &seen {
        assert!(*invalid > 20 && *valid > 20, "{target}: {invalid} invalid, {valid} valid");
    }
    // What no document of this harness can show: broken text, notes, and whole streams.
    let out_of_reach = [
        Code::NotUtf8,
        Code::NotJson,
        Code::LoneSurrogate,
        Code::LanguageNotDeclared,
        Code::RiskyDefault,
        Code::CannotReply,
    ];
    let unseen: Vec<&Code> = Code::ALL
        .iter()
        .filter(|code| !codes.contains(code) && !out_of_reach.contains(code))
        .collect();
    assert!(unseen.is_empty(), "no document was wrong in these ways: {unseen:?}");
}

#[test]
fn an_object_in_memory_is_read_as_its_text_is() {
    let mut read = [0; 2];
    judge_cases(&HARNESS.probes, (SEED, 5_000), |case, _| {
        let Json::Object(object) = &case.document else { return };
        for mode in [Mode::Strict, Mode::Tolerant] {
            let of_text = aaep::read(case.document.to_string().as_bytes(), mode);
            let of_object = aaep::read_object(object, mode);
            let has_place = |it: &Violation| it.problem.starts_with("At column ");
            if of_text.violations.iter().any(has_place) {
                assert!(matches!(&*of_object.violations, [it] if it.code == Code::TooDeep));
            } else {
                assert_eq!(of_object, of_text, "{}", case.text());
            }
            read[usize::from(of_text.is_valid())] += 1;
        }
    });
    assert!(read.iter().all(|some| *some > 1000), "invalid and valid: {read:?}");
}

#[test]
fn what_is_probed_is_right_before_it_is_changed() {
    let mut seen = HashSet::new();
    for base in HARNESS.probes.iter().filter(|probe| seen.insert(&probe.target)) {
        let verdicts = HARNESS.judge.hear(base);
        assert!(verdicts.schemas_accept, "{}: {:?}", base.text(), HARNESS.judge.complaints(base));
        assert!(verdicts.types_accept(), "{}: {:?}", base.text(), verdicts.errors);
    }
}

/// Documents on which both sides agree as long as the schemas are right, with what the types say.
fn agreed_cases(cases: u64) -> Vec<(Case, Vec<Violation>)> {
    let Harness { generator, probes, .. } = &*HARNESS;
    let mut agreed = Vec::new();
    judge_cases(probes, (SEED, cases), |case, verdicts| {
        if difference(verdicts, &case.document, generator).is_none() {
            agreed.push((case.clone(), verdicts.errors.clone()));
        }
    });
    agreed
}

/// Whether the harness finds a document that shows the schemas to be wrong.
fn is_noticed(sabotage: &Sabotage, agreed: &[(Case, Vec<Violation>)]) -> bool {
    let Harness { files, generator, .. } = &*HARNESS;
    let judge = Judge::of_one(&sabotage.apply(files), &sabotage.path);
    agreed.iter().any(|(case, errors)| {
        let concerns = judge.asks(case, &sabotage.path);
        let verdicts = || judge.hear_with(case, errors.clone());
        concerns && difference(&verdicts(), &case.document, generator).is_some()
    })
}

#[test]
fn a_schema_that_is_wrong_by_one_keyword_is_noticed() {
    const CHOSEN: &[(&str, &str, &str)] = &[
        ("envelope", "/properties/event_id", "pattern"),
        ("envelope", "/properties/verbosity", "enum"),
        ("envelope", "/properties/extensions", "propertyNames"),
        ("envelope", "/properties/producer", "additionalProperties"),
        ("core/agent.session.started", "/properties/tools_available", "uniqueItems"),
        ("core/agent.session.errored", "", "unevaluatedProperties"),
        ("core/agent.awaiting.confirmation", "/properties/urgency", "const"),
        ("core/agent.awaiting.confirmation", "/properties/timeout_seconds", "maximum"),
        ("core/agent.awaiting.confirmation", "/allOf/1", "then"),
        ("core/agent.awaiting.clarification", "/allOf/1", "then"),
        ("handshake/subscription.request", "/properties/subscriber_id", "maxLength"),
        ("handshake/confirmation.reply", "", "required"),
        ("handshake/clarification.reply", "/properties/response", "oneOf"),
        ("producer.manifest", "/properties/languages_supported/items", "pattern"),
        ("extensions/agentvoice", "/properties/merged/properties/count", "minimum"),
    ];
    let agreed = agreed_cases(1100);
    let all = sabotage::all(&HARNESS.files);
    for (path, pointer, keyword) in CHOSEN {
        let one = all
            .iter()
            .find(|one| {
                one.path.starts_with(path) && one.pointer == *pointer && one.keyword == *keyword
            })
            .unwrap_or_else(|| panic!("{path} has no {keyword} at {pointer:?}"));
        assert!(is_noticed(one, &agreed), "unnoticed: {one:?}");
    }
}

#[test]
#[ignore = "some minutes: every keyword of every schema in turn"]
fn any_schema_that_is_wrong_by_one_keyword_is_noticed() {
    let agreed = agreed_cases(from_environment("AAEP_CASES", CASES));
    let all = sabotage::all(&HARNESS.files);
    let unnoticed: Vec<String> =
        all.iter().filter(|one| !is_noticed(one, &agreed)).map(|one| format!("{one:?}")).collect();
    assert!(
        unnoticed.is_empty(),
        "{} of {} unnoticed:\n{}",
        unnoticed.len(),
        all.len(),
        unnoticed.join("\n")
    );
}

#[test]
fn what_is_beyond_a_schema_is_listed_once_and_with_a_reason() {
    let codes: HashSet<Code> = BEYOND_SCHEMA.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes.len(), BEYOND_SCHEMA.len(), "a code is listed twice");
    assert!(BEYOND_SCHEMA.iter().all(|(_, reason)| reason.ends_with('.')));
}

#[test]
fn every_schema_is_a_schema_of_2020_12() {
    for file in &HARNESS.files {
        assert_eq!(file.schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        if let Err(error) = jsonschema::meta::validate(&file.schema) {
            panic!("{}: {error}", file.path);
        }
    }
}

#[test]
fn every_schema_has_an_id_of_its_own_that_ends_in_its_path() {
    let files = &HARNESS.files;
    let ids: HashSet<&str> = files.iter().filter_map(|file| file.schema["$id"].as_str()).collect();
    let paths: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!((ids.len(), paths.len()), (files.len(), files.len()));
    for file in files {
        let id = file.schema["$id"].as_str().expect("a schema has an id");
        // We own no domain, so our own extension has a URN.
        let is_own = ["extensions/", "agentvoice/"].iter().any(|it| file.path.starts_with(it));
        let is_ours = is_own && id.starts_with("urn:uuid:");
        let expected = format!("https://aaep-protocol.org/schemas/v1/{}", file.path);
        assert!(is_ours || id == expected, "{}: {id}", file.path);
    }
}

#[test]
fn every_property_says_what_it_is_for() {
    fn check(path: &str, schema: &Json) {
        for keyword in ["properties", "patternProperties"] {
            for (name, field) in schema[keyword].as_object().into_iter().flatten() {
                let about = field["description"].as_str().unwrap_or_default();
                assert!(about.ends_with('.') && about.len() > 10, "{path}: {name}: {about:?}");
                check(path, field);
            }
        }
        for keyword in ["items", "additionalProperties", "propertyNames"] {
            schema.get(keyword).into_iter().for_each(|part| check(path, part));
        }
        for keyword in ["oneOf", "prefixItems"] {
            schema[keyword].as_array().into_iter().flatten().for_each(|part| check(path, part));
        }
    }
    for file in &HARNESS.files {
        for keyword in ["title", "description"] {
            assert!(file.schema[keyword].is_string(), "{}: {keyword}", file.path);
        }
        check(&file.path, &file.schema);
    }
}
