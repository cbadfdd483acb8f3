//! Agent names as the person hears them while listening: sessions with the same name have numbers. Pure.

use std::collections::BTreeSet;

use super::look::AttentionEntry;

/// Gives each agent the name under which the person heard of it. If nobody was told one yet, sessions with the same
/// name get the free numbers, and the first to ask gets the lowest.
pub(super) fn tell_apart(mut waiting: Vec<&mut AttentionEntry>) {
    waiting.sort_by_key(|it| it.asked_at.unix_us());
    let key = |it: &AttentionEntry| (it.address.clone(), it.event.envelope.session_id.clone());
    let mut labels: Vec<_> = waiting
        .iter()
        .filter_map(|it| Some((key(it), it.agent.clone(), it.agent_label.clone()?)))
        .collect();
    for at in 0..waiting.len() {
        let Some(it) = waiting.get(at) else { return };
        if labels.iter().any(|(of, ..)| *of == key(it)) {
            continue;
        }
        let same_name = waiting.iter().filter(|other| is_same(&other.agent, &it.agent));
        let sessions: BTreeSet<_> = same_name.map(|it| key(it)).collect();
        let taken: Vec<&String> = labels.iter().map(|(.., label)| label).collect();
        let numbered =
            (2..=sessions.len() + taken.len() + 1).map(|it_is| format!("{} {it_is}", it.agent));
        let is_free = |label: &String| !taken.iter().any(|it| is_same(it, label));
        // The first one has the name alone, and keeps it.
        let label = std::iter::once(it.agent.clone()).chain(numbered).find(is_free);
        let label = label.unwrap_or_else(|| it.agent.clone());
        labels.push((key(it), it.agent.clone(), label));
    }
    for it in waiting {
        if let Some((.., label)) = labels.iter().find(|(of, ..)| *of == key(it)) {
            it.agent.clone_from(label);
        }
    }
}

fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::look::tests::waiting;
    use super::*;

    fn called(asks: &[(&str, &str, Option<&str>)]) -> Vec<String> {
        let mut all: Vec<AttentionEntry> = asks
            .iter()
            .map(|(session, agent, label)| {
                let fields = json!({ "session_id": session, "producer": { "agent_id": agent } });
                AttentionEntry { agent_label: label.map(str::to_owned), ..waiting(&fields) }
            })
            .collect();
        tell_apart(all.iter_mut().collect());
        all.into_iter().map(|it| it.agent).collect()
    }

    #[test]
    fn sessions_of_one_name_are_told_apart() {
        assert_eq!(called(&[("sess_a", "Coder", None)]), ["Coder"]);
        let twice =
            [("sess_a", "Coder", None), ("sess_a", "Coder", None), ("sess_b", "Mail", None)];
        assert_eq!(called(&twice), ["Coder", "Coder", "Mail"], "one session, two asks");
        let two = [("sess_a", "Coder", None), ("sess_b", "coder", None)];
        assert_eq!(called(&two), ["Coder", "coder 2"]);
    }

    #[test]
    fn what_the_person_heard_counts() {
        let heard = [("sess_a", "Coder", Some("Coder 2")), ("sess_b", "Coder", None)];
        assert_eq!(called(&heard), ["Coder 2", "Coder"]);
        let first = [("sess_a", "Coder", None), ("sess_b", "Coder", Some("Coder"))];
        assert_eq!(called(&first), ["Coder 2", "Coder"]);
        let alone = [("sess_a", "Coder", Some("Coder 3"))];
        assert_eq!(called(&alone), ["Coder 3"]);
        let again = [("sess_a", "Coder", Some("Coder 2")), ("sess_a", "Coder", None)];
        assert_eq!(called(&again), ["Coder 2", "Coder 2"], "one session has one name");
    }
}
