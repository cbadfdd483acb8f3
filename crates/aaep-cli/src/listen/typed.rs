//! What the lines mean that the person types while listening. Pure.

use aaep_announce::{AskNumber, Pace, Wish};

/// What a line means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed<'a> {
    /// Words to a question, by its number.
    To(AskNumber, &'a str),
    /// A number alone: that of a question, or the answer to one that asks for a number.
    Number(AskNumber),
    /// Words without a number.
    Words(&'a str),
    Wish(Wish),
    /// Be quiet, in a word that could be meant for an agent.
    Stop,
    /// Words for an agent, its name first.
    Tell(&'a str),
    /// The agent of this name is to stop.
    Cancel(&'a str),
    /// What happened since the person left.
    Left,
    /// The person goes away.
    Away,
    List,
    Help,
    Quit,
    Nothing,
}

/// What a line means. A number with something behind it is always that of a question.
pub(super) fn read(line: &str) -> Typed<'_> {
    let line = line.trim();
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if let Ok(number) = first.trim_end_matches([':', '.']).parse::<AskNumber>() {
        return match rest.trim() {
            "" => Typed::Number(number),
            words => Typed::To(number, words),
        };
    }
    let line_in_small = line.to_lowercase();
    if let Some(rate) = rate(&line_in_small) {
        return Typed::Wish(Wish::Pace(Pace::Rate(rate)));
    }
    match first.to_lowercase().as_str() {
        "tell" => return Typed::Tell(rest.trim()),
        "cancel" => return Typed::Cancel(rest.trim()),
        _ => {}
    }
    match line_in_small.as_str() {
        "" => Typed::Nothing,
        "repeat" | "again" => Typed::Wish(Wish::Repeat),
        "back" | "previous" => Typed::Wish(Wish::Back),
        "more" => Typed::Wish(Wish::More),
        "status" => Typed::Wish(Wish::Status),
        "last" | "reply" | "last reply" => Typed::Wish(Wish::LastReply),
        "exact" => Typed::Wish(Wish::ExactText),
        "stop" => Typed::Stop,
        "hush" | "quiet" => Typed::Wish(Wish::Hush),
        "skip" | "next" => Typed::Wish(Wish::Skip),
        "slower" => Typed::Wish(Wish::Pace(Pace::Slower)),
        "faster" => Typed::Wish(Wish::Pace(Pace::Faster)),
        "decisions" => Typed::Wish(Wish::OnlyDecisions(true)),
        "everything" => Typed::Wish(Wish::OnlyDecisions(false)),
        "left" => Typed::Left,
        "away" => Typed::Away,
        "list" | "attention" => Typed::List,
        "help" | "?" => Typed::Help,
        "quit" | "exit" => Typed::Quit,
        _ => Typed::Words(line),
    }
}

/// The rate that is wanted of a voice: the nearest that there is. Anything but a number is not about the rate.
fn rate(line: &str) -> Option<i8> {
    let number: i64 = line.strip_prefix("rate ")?.trim().parse().ok()?;
    i8::try_from(number.clamp(-100, 100)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_first_and_says_which_question_is_meant() {
        assert_eq!(read("2 yes\n"), Typed::To(2, "yes"));
        assert_eq!(read(" 12:  my own words "), Typed::To(12, "my own words"));
        assert_eq!(read("3. no"), Typed::To(3, "no"));
        assert_eq!(read("7"), Typed::Number(7));
        assert_eq!(read("2yes"), Typed::Words("2yes"));
        assert_eq!(read("-1 yes"), Typed::Words("-1 yes"));
    }

    #[test]
    fn wishes_are_single_words_and_everything_else_is_words() {
        assert_eq!(read("Repeat"), Typed::Wish(Wish::Repeat));
        assert_eq!(
            (read("back"), read("More")),
            (Typed::Wish(Wish::Back), Typed::Wish(Wish::More))
        );
        assert_eq!(read("2 more"), Typed::To(2, "more"));
        assert_eq!(read("Faster "), Typed::Wish(Wish::Pace(Pace::Faster)));
        assert_eq!(read("decisions"), Typed::Wish(Wish::OnlyDecisions(true)));
        assert_eq!(read("last reply"), Typed::Wish(Wish::LastReply));
        assert_eq!((read("left"), read(" Away ")), (Typed::Left, Typed::Away));
        assert_eq!(read("left or right"), Typed::Words("left or right"));
        assert_eq!(read("quit"), Typed::Quit);
        assert_eq!(read("  \r\n"), Typed::Nothing);
        assert_eq!(read("yes"), Typed::Words("yes"));
        assert_eq!(read("quit smoking"), Typed::Words("quit smoking"));
    }

    #[test]
    fn words_for_agents_begin_with_a_verb() {
        assert_eq!(read("Tell Coder run  the tests"), Typed::Tell("Coder run  the tests"));
        assert_eq!((read("tell"), read("cancel")), (Typed::Tell(""), Typed::Cancel("")));
        assert_eq!(read("cancel Claude Code"), Typed::Cancel("Claude Code"));
        assert_eq!(read("2 cancel it"), Typed::To(2, "cancel it"), "an answer");
        assert_eq!((read("stop"), read("hush")), (Typed::Stop, Typed::Wish(Wish::Hush)));
    }

    #[test]
    fn a_rate_is_a_number_within_its_bounds() {
        let rate = |rate| Typed::Wish(Wish::Pace(Pace::Rate(rate)));
        assert_eq!((read("rate 20"), read("Rate  -30 \n")), (rate(20), rate(-30)));
        assert_eq!((read("rate 500"), read("rate -99999999999")), (rate(100), rate(-100)));
        for words in ["rate", "rate of change", "rate 1 2", "rate 99999999999999999999", "rated 1"]
        {
            assert_eq!(read(words), Typed::Words(words));
        }
        assert_eq!(read("2 rate 20"), Typed::To(2, "rate 20"));
    }
}
