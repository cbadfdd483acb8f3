//! Properties that hold for every request: generated requests against generated offers.

use aaep::CoreType;
use aaep::event::action::CoalesceBoundary;
use proptest::collection::vec;
use proptest::option::of as maybe;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;

const LANGUAGES: &[&str] = &[
    "en",
    "en-US",
    "EN-gb",
    "es-419",
    "es",
    "yo-NG",
    "zh",
    "zh-Hant",
    "zh-Hant-TW",
    "de-CH-1996",
    "x-house",
];

const PATTERNS: &[&str] = &[
    "*",
    "aaep:agent.*",
    "aaep:agent.tool.*",
    "aaep:agent.tool.invoked",
    "aaep:agent.session.*",
    "https://aaep-protocol.org/types/agent.tool.*",
    "medai:*",
    "nonsense",
];

fn some_languages() -> impl Strategy<Value = Vec<LanguageTag>> {
    subsequence(LANGUAGES, 1..=4).prop_shuffle().prop_map(|texts| tags(&texts))
}

fn some_patterns() -> impl Strategy<Value = Vec<TypePattern>> {
    let parse = |text| TypePattern::parse(text).expect("pattern");
    subsequence(PATTERNS, 0..=3)
        .prop_shuffle()
        .prop_map(move |texts| texts.into_iter().map(parse).collect())
}

fn some_filters() -> impl Strategy<Value = EventFilters> {
    (maybe(some_patterns()), maybe(some_patterns())).prop_map(|(include, exclude)| EventFilters {
        include,
        exclude,
        other: Object::new(),
    })
}

/// Capabilities of extensions, rarely with reserved prefixes.
fn some_others() -> impl Strategy<Value = Object> {
    let key = prop_oneof![
        20 => select(&["medai", "medai2", "agentvoice", "haptic", "", "a b"][..]),
        1 => select(&["aaep", "@id"][..]),
    ];
    let value = any::<u8>().prop_map(|n| json!({ "n": n, "deep": [{ "x": null }] }));
    vec((key, value), 0..3)
        .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

prop_compose! {
    fn some_capabilities()(
        max_events_per_second in maybe(prop_oneof![1..20_u64, Just(100_000)]),
        preferred_verbosity in maybe(select(Verbosity::ALL)),
        languages in maybe(some_languages()),
        (supports_confirmation_reply, supports_clarification_reply, accept_signed_manifests_only)
            in any::<(Option<bool>, Option<bool>, Option<bool>)>(),
        coalesce_boundaries in maybe(subsequence(CoalesceBoundary::ALL, 1..=5).prop_shuffle()),
        event_filters in maybe(some_filters()),
        supported_conformance_levels in maybe(subsequence(&[1_u64, 2, 3][..], 1..=3).prop_shuffle()),
        supported_extensions in maybe(
            subsequence(&[aaep::extension::CONTEXT, MEDAI, MEDAI_2, IMPOSTOR, "urn:x:y"][..], 0..=3)
                .prop_shuffle()
                .prop_map(|texts| texts.into_iter().map(uri).collect())
        ),
        cognitive_load in maybe(select(CognitiveLoad::ALL)),
        pace_wpm in maybe(50..=1000_u64),
        other in some_others(),
    ) -> Capabilities {
        Capabilities {
            max_events_per_second, preferred_verbosity, languages, supports_confirmation_reply,
            supports_clarification_reply, coalesce_boundaries, event_filters,
            supported_conformance_levels, supported_extensions, cognitive_load, pace_wpm,
            accept_signed_manifests_only, other,
        }
    }
}

prop_compose! {
    fn some_offer()(
        ours in subsequence(&["0.1.0-draft", "1.0.0", "1.2.0"][..], 1..=3),
        languages in some_languages(),
        max_events_per_second in maybe(0..30_u64),
        known in 0..=4_usize,
        conformance_levels in subsequence(&[1_u64, 2, 3][..], 0..=3),
        (is_signed, only_offered_languages, has_manifest) in any::<(bool, bool, bool)>(),
    ) -> Offer {
        let mut offer = if is_signed { signed_offer() } else { offer() };
        offer.extensions.truncate(known);
        offer.manifest_uri = offer.manifest_uri.filter(|_| has_manifest);
        Offer {
            versions: versions(&ours), languages, max_events_per_second, conformance_levels,
            only_offered_languages, max_concurrent_subscriptions: 4, ..offer
        }
    }
}

prop_compose! {
    fn some_request()(
        version in select(&["1.0.0", "1.0.0", "1.0.0", "1.1.0", "2.0.0", "1.0.0-rc.1"][..]),
        capabilities in some_capabilities(),
    ) -> SubscriptionRequest {
        SubscriptionRequest { capabilities, ..request_of(version, &json!({})) }
    }
}

fn change_of(capabilities: Capabilities) -> SubscriptionRenegotiate {
    SubscriptionRenegotiate { capabilities, ..change(&json!({})) }
}

/// Some types of events, core and other.
fn types() -> impl Iterator<Item = EventType> {
    let others = ["medai:patient.consulted", "aaep:agent.future.thing", "nonsense:x"];
    let others = others.into_iter().map(|text| EventType::parse(text).expect("type"));
    CoreType::ALL.iter().map(|core| EventType::Core(*core)).chain(others)
}

/// Checks terms against what was requested by looking at events and not at fields.
fn assert_within(terms: &Terms, asked: &Capabilities) -> Result<(), TestCaseError> {
    let free = Offer { conformance_levels: vec![1, 2, 3], ..signed_offer() };
    let alone = Capabilities { event_filters: asked.event_filters.clone(), ..Capabilities::new() };
    let request = SubscriptionRequest { capabilities: alone, ..request(&json!({})) };
    let (_, widest) = negotiate(&free, Door::Open, 0, &request, id()).expect("accepted");
    for event_type in types() {
        prop_assert!(!terms.wants(&event_type) || widest.wants(&event_type));
    }
    prop_assert!(!terms.confirmation_reply || asked.supports_confirmation_reply == Some(true));
    prop_assert!(!terms.clarification_reply || asked.supports_clarification_reply == Some(true));
    if let Some(rate) = asked.max_events_per_second {
        prop_assert!(terms.max_events_per_second.is_some_and(|honored| honored <= rate));
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_answer_is_valid_deterministic_and_never_wider_than_the_request(
        offer in some_offer(), active in 0..6_usize, request in some_request(),
    ) {
        let answer = negotiate(&offer, Door::Open, active, &request, id());
        prop_assert_eq!(&answer, &negotiate(&offer, Door::Open, active, &request, id()));
        match answer {
            Ok((accepted, terms)) => {
                assert_valid(&aaep::check(&accepted));
                let honored = &accepted.honored_capabilities;
                prop_assert_eq!(wider_than(honored, &request.capabilities), [""; 0]);
                assert_within(&terms, &request.capabilities)?;
                prop_assert_eq!(honored, &terms.to_capabilities(&request.capabilities));
                prop_assert!(active < offer.max_concurrent_subscriptions);
                if let Some(ceiling) = offer.max_events_per_second {
                    let rate = terms.max_events_per_second;
                    prop_assert!(rate.is_some_and(|rate| rate <= ceiling.max(1)));
                }
            }
            Err(rejected) => {
                assert_valid(&aaep::check(&rejected));
                prop_assert_ne!(rejected.reason_code, ReasonCode::Unknown);
            }
        }
    }

    #[test]
    fn asking_for_what_was_honored_is_granted_without_a_note(
        offer in some_offer(), request in some_request(),
    ) {
        if let Ok((accepted, terms)) = negotiate(&offer, Door::Open, 0, &request, id())
            && !terms.languages.is_empty() && !terms.levels.is_empty()
        {
            let again = SubscriptionRequest {
                aaep_version: accepted.aaep_version,
                capabilities: Capabilities {
                    languages: Some(terms.languages.clone()),
                    ..accepted.honored_capabilities
                },
                ..request
            };
            let (accepted, same) = negotiate(&offer, Door::Open, 0, &again, id()).expect("granted");
            prop_assert_eq!(same, terms);
            prop_assert_eq!(accepted.negotiation_notes, None);
        }
    }

    #[test]
    fn a_renegotiation_is_as_honest_as_a_request_and_an_empty_one_keeps_the_terms(
        offer in some_offer(), later in some_offer(), request in some_request(),
        changes in vec(some_capabilities(), 0..4),
    ) {
        let Ok((_, mut terms)) = negotiate(&offer, Door::Open, 0, &request, id()) else {
            return Ok(());
        };
        let mut asked = request.capabilities;
        for capabilities in changes {
            let change = change_of(capabilities);
            match renegotiate(&later, &terms, &asked, &change) {
                Ok((accepted, new_terms, new_asked)) => {
                    assert_valid(&aaep::check(&accepted));
                    prop_assert_eq!(
                        wider_than(&accepted.honored_capabilities, &new_asked),
                        [""; 0]
                    );
                    assert_within(&new_terms, &new_asked)?;
                    (terms, asked) = (new_terms, new_asked);
                }
                Err(rejected) => assert_valid(&aaep::check(&rejected)),
            }
            let nothing = change_of(Capabilities::new());
            let (accepted, same, _) =
                renegotiate(&later, &terms, &asked, &nothing).expect("nothing to refuse");
            prop_assert_eq!(&same, &terms);
            prop_assert_eq!(accepted.negotiation_notes, None);
        }
    }

    #[test]
    fn an_audience_shares_its_wishes_and_takes_any_pace(
        one in some_request(), other in some_request(), rate in 1..9_u64,
    ) {
        let offer = signed_offer();
        let terms = |request| negotiate(&offer, Door::Open, 0, request, id()).ok().map(|it| it.1);
        if let (Some(one), Some(other)) = (terms(&one), terms(&other)) {
            let paced = Terms {
                max_events_per_second: one.max_events_per_second.map(|_| rate),
                pace_wpm: one.pace_wpm.and(other.pace_wpm).or(one.pace_wpm),
                signed_only: other.signed_only,
                ..one.clone()
            };
            prop_assert_eq!(paced.audience_key(), one.audience_key());
            let mixed = Terms { include: other.include, exclude: other.exclude, ..one.clone() };
            if mixed.audience_key() == one.audience_key() {
                for event_type in types() {
                    prop_assert_eq!(one.wants(&event_type), mixed.wants(&event_type));
                }
            }
        }
    }

    #[test]
    fn a_filter_found_to_be_no_wider_lets_no_further_type_pass(
        honored in some_filters(), asked in some_filters(),
    ) {
        let of = |filters: &EventFilters| Capabilities {
            event_filters: Some(filters.clone()), ..Capabilities::new()
        };
        if wider_than(&of(&honored), &of(&asked)).is_empty() {
            let terms = |filters| {
                let request =
                    SubscriptionRequest { capabilities: of(filters), ..request(&json!({})) };
                negotiate(&offer(), Door::Open, 0, &request, id()).expect("accepted").1
            };
            let (honored, asked) = (terms(&honored), terms(&asked));
            for event_type in types() {
                prop_assert!(!honored.wants(&event_type) || asked.wants(&event_type));
            }
        }
    }
}
