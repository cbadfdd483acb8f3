//! Whether terms are wider than what was requested: §5.4.4 as a check that anyone can make.
//!
//! Only what the honored terms state is compared. A field that they leave out promises nothing, and
//! §5.4.3 itself leaves out requested filters. A field that was not requested counts as requested
//! with its default (§5.3.1). If two filters cannot be compared cheaply, the answer is "wider": the
//! check may be too strict, but never too lax.

use std::fmt;

use aaep::event::action::CoalesceBoundary;
use aaep::{CORE_TYPES, Capabilities, CognitiveLoad, EventFilters, TypePattern, Verbosity};

use super::Terms;

/// The names of the honored fields that are wider than requested, in the order of §5.3.1.
/// Unrequested capabilities of extensions come last, as `extension capabilities`. An empty list
/// means that the terms are correct.
pub fn wider_than(honored: &Capabilities, asked: &Capabilities) -> Vec<&'static str> {
    // Every field is named, so that a new one does not compile until it is compared here.
    let Capabilities {
        max_events_per_second,
        preferred_verbosity,
        languages,
        supports_confirmation_reply,
        supports_clarification_reply,
        coalesce_boundaries,
        event_filters,
        supported_conformance_levels,
        supported_extensions,
        cognitive_load,
        pace_wpm,
        accept_signed_manifests_only,
        other,
    } = honored;
    let default = Terms::defaults();
    let boundaries = asked.coalesce_boundaries.as_ref().unwrap_or(&default.boundaries);
    let asked_languages = asked.languages.as_ref().unwrap_or(&default.languages);
    let levels = asked.supported_conformance_levels.as_ref().unwrap_or(&default.levels);
    let extensions = asked.supported_extensions.as_ref().unwrap_or(&default.extensions);
    let verbosity = asked.preferred_verbosity.as_ref().unwrap_or(&default.verbosity);
    let load = asked.cognitive_load.as_ref().unwrap_or(&default.cognitive_load);
    let claims = |honored: Option<bool>, asked: Option<bool>| {
        honored == Some(true) && !asked.unwrap_or(false)
    };
    let findings = [
        ("max_events_per_second", {
            let asked = asked.max_events_per_second.unwrap_or(u64::MAX);
            max_events_per_second.is_some_and(|rate| rate > asked)
        }),
        ("preferred_verbosity", {
            let is_wider = |it: &Verbosity| it != verbosity && detail(it) >= detail(verbosity);
            preferred_verbosity.as_ref().is_some_and(is_wider)
        }),
        ("languages", is_beyond(languages.as_ref(), asked_languages)),
        (
            "supports_confirmation_reply",
            claims(*supports_confirmation_reply, asked.supports_confirmation_reply),
        ),
        (
            "supports_clarification_reply",
            claims(*supports_clarification_reply, asked.supports_clarification_reply),
        ),
        ("coalesce_boundaries", is_beyond(coalesce_boundaries.as_ref(), boundaries)),
        ("event_filters", {
            let asked = PassingTypes::of(asked.event_filters.as_ref());
            event_filters.as_ref().is_some_and(|it| !PassingTypes::of(Some(it)).is_within(&asked))
        }),
        ("supported_conformance_levels", is_beyond(supported_conformance_levels.as_ref(), levels)),
        ("supported_extensions", is_beyond(supported_extensions.as_ref(), extensions)),
        ("cognitive_load", {
            let is_wider = |it: &CognitiveLoad| it != load && volume(it) >= volume(load);
            cognitive_load.as_ref().is_some_and(is_wider)
        }),
        // If the subscriber stated no pace, any number would be invented.
        ("pace_wpm", pace_wpm.is_some_and(|pace| pace > asked.pace_wpm.unwrap_or(0))),
        (
            "accept_signed_manifests_only",
            asked.accept_signed_manifests_only == Some(true)
                && *accept_signed_manifests_only == Some(false),
        ),
        ("extension capabilities", other.keys().any(|prefix| !asked.other.contains_key(prefix))),
    ];
    findings.into_iter().filter_map(|(field, is_wider)| is_wider.then_some(field)).collect()
}

/// Whether a list contains something that another one does not.
fn is_beyond<T: PartialEq>(honored: Option<&Vec<T>>, asked: &[T]) -> bool {
    honored.into_iter().flatten().any(|item| !asked.contains(item))
}

/// Ranks how much is said about an event. An unknown value ranks highest.
fn detail(verbosity: &Verbosity) -> usize {
    Verbosity::ALL.iter().position(|it| it == verbosity).unwrap_or(usize::MAX)
}

/// Ranks how many events are announced. An unknown value ranks highest.
fn volume(load: &CognitiveLoad) -> usize {
    CognitiveLoad::ALL.iter().position(|it| it == load).unwrap_or(usize::MAX)
}

/// Ranks boundaries from the finest to the coarsest.
pub(super) fn coarseness(boundary: &CoalesceBoundary) -> usize {
    CoalesceBoundary::ALL.iter().position(|it| it == boundary).unwrap_or(usize::MAX)
}

/// The types that filters let pass.
struct PassingTypes {
    include: Vec<PatternReach>,
    exclude: Vec<PatternReach>,
}

impl PassingTypes {
    /// The types that the filters let pass, with the defaults of §5.3.1.7 where a filter is absent.
    fn of(filters: Option<&EventFilters>) -> Self {
        let default = Terms::defaults();
        let reaches = |patterns: Option<&Vec<TypePattern>>, default: &[TypePattern]| {
            patterns.map_or(default, Vec::as_slice).iter().map(PatternReach::of).collect()
        };
        PassingTypes {
            include: reaches(filters.and_then(|it| it.include.as_ref()), &default.include),
            exclude: reaches(filters.and_then(|it| it.exclude.as_ref()), &default.exclude),
        }
    }

    /// Whether everything that passes here also passes there. Each include must lie within one
    /// include of the other, and where it overlaps an exclude of the other, one of our own excludes
    /// must cover the overlap.
    fn is_within(&self, other: &PassingTypes) -> bool {
        let is_excluded = |reach: &PatternReach| self.exclude.iter().any(|own| own.covers(reach));
        self.include.iter().filter(|reach| !is_excluded(reach)).all(|reach| {
            other.include.iter().any(|theirs| theirs.covers(reach))
                && other.exclude.iter().filter_map(|theirs| theirs.meets(reach)).all(is_excluded)
        })
    }
}

/// The set of types that one pattern matches. Both notations of a core type count as the same.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PatternReach {
    start: String,
    is_prefix: bool,
}

impl PatternReach {
    pub(super) fn of(pattern: &TypePattern) -> Self {
        let text = pattern.as_str();
        let start = text.strip_suffix('*').unwrap_or(text);
        PatternReach {
            start: match start.strip_prefix(CORE_TYPES) {
                Some(local) => format!("aaep:{local}"),
                None => start.to_owned(),
            },
            is_prefix: start.len() < text.len(),
        }
    }

    /// Whether this pattern matches every type that the other one matches.
    fn covers(&self, other: &PatternReach) -> bool {
        if self.is_prefix { other.start.starts_with(&self.start) } else { self == other }
    }

    /// The types that both match: one of the two, or `None`, because types form a tree.
    fn meets<'a>(&'a self, other: &'a PatternReach) -> Option<&'a PatternReach> {
        if self.covers(other) {
            Some(other)
        } else if other.covers(self) {
            Some(self)
        } else {
            None
        }
    }
}

impl fmt::Display for PatternReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.start, if self.is_prefix { "*" } else { "" })
    }
}
