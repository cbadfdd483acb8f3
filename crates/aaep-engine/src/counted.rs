//! A number with its noun, for the few sentences that the engine says itself.

/// The number and the noun, in the plural unless it is one: "1 tool", "2 tools".
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_several() {
        assert_eq!(
            [0, 1, 2].map(|count| counted(count, "second")),
            ["0 seconds", "1 second", "2 seconds"]
        );
    }
}
