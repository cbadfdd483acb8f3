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
#[path = "agreement/rng.rs"]
mod rng;
#[path = "agreement/sabotage.rs"]
mod sabotage;
#[path = "agreement/samples.rs"]
mod samples;

use std::collections::{BTreeMap, HashSet};

use aaep::{Code, schemas};
use generator::{Case, Generator};
use judge::{Judge, Verdicts, difference, shrink};

const SEED: u64 = 0x0aae_0001;
const CASES: u64 = 22_000;

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Makes and judges cases on two threads, and gives each to `look`.
fn judge_cases(
    (generator, judge): (&Generator, &Judge),
    (seed, cases): (u64, u64),
    look: impl Fn(&Case, &Verdicts) + Sync,
) {
    std::thread::scope(|scope| {
        for start in 0..2 {
            let look = &look;
            scope.spawn(move || {
                for number in (start..cases).step_by(2) {
                    let case = generator.case(seed, number);
                    look(&case, &judge.hear(&case));
                }
            });
        }
    });
}

#[test]
fn types_and_schemas_say_the_same() {
    let seed = from_environment("AAEP_SEED", SEED);
    let cases = from_environment("AAEP_CASES", CASES);
    let files = schemas();
    let (generator, judge) = (Generator::new(&files), Judge::new(&files));
    let found = std::sync::Mutex::new(BTreeMap::new());
    judge_cases((&generator, &judge), (seed, cases), |case, verdicts| {
        if let Some(difference) = difference(verdicts, &case.document, &generator) {
            let places: Vec<&str> =
                verdicts.errors.iter().filter_map(|error| error.pointer.rsplit('/').next()).collect();
            let kind = format!("{difference:?} {:?}", places.first());
            let mut found = found.lock().expect("no panic while held");
            found.entry(kind).or_insert_with(|| (case.clone(), difference));
        }
    });
    let found = found.into_inner().expect("no panic while held");
    let reports: Vec<String> = found
        .into_values()
        .take(40)
        .map(|(case, difference)| shrink(case, &difference, &judge, &generator).to_string())
        .collect();
    assert!(
        reports.is_empty(),
        "with AAEP_SEED={seed} the sides differ in {} ways:\n\n{}",
        reports.len(),
        reports.join("\n")
    );
}

#[test]
fn valid_and_invalid_documents_of_every_kind_are_tried() {
    let seen = std::sync::Mutex::new(BTreeMap::<String, [u32; 2]>::new());
    let codes = std::sync::Mutex::new(HashSet::new());
    let files = schemas();
    let both = (&Generator::new(&files), &Judge::new(&files));
    judge_cases(both, (SEED, 4400), |case, verdicts| {
        let mut seen = seen.lock().expect("no panic while held");
        seen.entry(case.target.clone()).or_default()[usize::from(verdicts.types_accept())] += 1;
        let mut codes = codes.lock().expect("no panic while held");
        codes.extend(verdicts.errors.iter().map(|error| error.code));
    });
    let seen = seen.into_inner().expect("no panic while held");
    let total: [u32; 2] =
        seen.values().fold([0, 0], |sum, some| [sum[0] + some[0], sum[1] + some[1]]);
    let all = total[0] + total[1];
    assert!(total.iter().all(|some| some * 5 > all), "invalid and valid: {total:?} of {all}");
    assert_eq!(seen.len(), 22, "12 events, an extension's, 7 messages, the manifest, our extension");
    for (target, [invalid, valid]) in &seen {
        assert!(*invalid > 20 && *valid > 20, "{target}: {invalid} invalid, {valid} valid");
    }
    // What no document of this harness can show: broken text, notes, and whole streams.
    let out_of_reach = [
        Code::NotUtf8,
        Code::NotJson,
        Code::LoneSurrogate,
        Code::TimeWentBack,
        Code::LanguageNotDeclared,
        Code::RiskyDefault,
        Code::CannotReply,
    ];
    let codes = codes.into_inner().expect("no panic while held");
    let unseen: Vec<&Code> = Code::ALL
        .iter()
        .filter(|code| !codes.contains(code) && !out_of_reach.contains(code))
        .collect();
    assert!(unseen.is_empty(), "no document was wrong in these ways: {unseen:?}");
}
