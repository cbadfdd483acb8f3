//! Worlds hold, repeat themselves, and notice every saboteur.

use aaep_sim::sabotage::{ALL, SabotageCase};
use aaep_sim::{run, run_with};

#[test]
fn the_same_seed_tells_the_same_story() {
    for seed in [1, 7, 42] {
        assert_eq!(run(seed), run(seed));
    }
}

#[test]
fn different_seeds_tell_different_stories() {
    assert_ne!(run(1).story, run(2).story);
}

#[test]
fn everything_holds_around_the_real_engine() {
    // Long runs once found faults in the last ones.
    let once_broken = [
        1_237, 1_613, 2_857, 3_209, 3_721, 4_817, 8_334, 12_004, 12_192, 14_024, 15_717, 16_369,
        17_025, 21_461, 201_253, 2_949, 2_998, 7_975, 8_608, 13_195, 27_057, 28_097, 30_253, 828,
        30_665, 31_290, 32_789, 67_469, 67_545, 85_193, 97_161, 97_364, 63, 127, 670, 2_207, 2_795,
        2_975, 3_389, 4_417, 14_149, 15_365, 16_232, 16_461, 21_631, 29_610, 36_950, 49_995,
        62_400, 71_261,
    ];
    for seed in (0..60).chain(once_broken) {
        let outcome = run(seed);
        let failure = outcome.failure.as_ref();
        assert!(failure.is_none(), "seed {seed}: {failure:?}\n{}", outcome.story);
    }
}

#[test]
fn every_invariant_catches_its_saboteur() {
    // Every other one in a thread of its own: each plays up to 300 worlds.
    let missed_of = |first: usize| -> Vec<&str> {
        let some = ALL.iter().skip(first).step_by(2);
        some.filter(|it| !is_caught(it)).map(|it| it.name).collect()
    };
    let missed: Vec<&str> = std::thread::scope(|scope| {
        let other = scope.spawn(|| missed_of(1));
        let mut missed = missed_of(0);
        missed.extend(other.join().expect("it does not panic"));
        missed
    });
    assert!(missed.is_empty(), "Nobody noticed a hub that {missed:?}.");
}

/// Whether the intended invariant reports it for one of some seeds.
fn is_caught(sabotage: &SabotageCase) -> bool {
    (0..300).any(|seed| {
        let outcome = run_with(seed, |engine| sabotage.put_on(engine));
        outcome.failure.is_some_and(|failure| failure.invariant == sabotage.caught_by)
    })
}

#[test]
fn every_invariant_has_a_saboteur() {
    let twin = aaep_sim::hub::engine(0, None);
    let names: Vec<&str> = aaep_sim::check::all(twin, aaep_sim::hub::memory_bytes(0))
        .iter()
        .map(|invariant| invariant.name())
        .collect();
    assert_eq!(names.len(), aaep_sim::check::COUNT);
    for name in names {
        assert!(ALL.iter().any(|it| it.caught_by == name), "Nothing shows that {name} can fail.");
    }
}
