//! What the lines that the person types while listening mean. Pure.

use aaep_announce::{AskNumber, ListeningRequest, Pace};

/// The meaning of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypedMeaning<'a> {
    /// Words for the ask with this number.
    To(AskNumber, &'a str),
    /// A number alone: that of an ask, or the answer to one that asks for a number.
    Number(AskNumber),
    /// Words without a number.
    Words(&'a str),
    Request(ListeningRequest),
    /// Be quiet, in a word that could be meant for an agent.
    Stop,
    /// Words for an agent, with its name first.
    Tell(&'a str),
    /// The agent of this name must stop.
    Cancel(&'a str),
    /// Tell what happened since the person left.
    Left,
    /// The person goes away.
    Away,
    List,
    Help,
    Quit,
    Nothing,
}

/// Reads a line. A number with something after it is always that of an ask.
pub(super) fn read(line: &str) -> TypedMeaning<'_> {
    let line = line.trim();
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if let Ok(number) = first.trim_end_matches([':', '.']).parse::<AskNumber>() {
        return match rest.trim() {
            "" => TypedMeaning::Number(number),
            words => TypedMeaning::To(number, words),
        };
    }
    let line_in_small = line.to_lowercase();
    if let Some(rate) = rate(&line_in_small) {
        return TypedMeaning::Request(ListeningRequest::Pace(Pace::Rate(rate)));
    }
    match first.to_lowercase().as_str() {
        "tell" => return TypedMeaning::Tell(rest.trim()),
        "cancel" => return TypedMeaning::Cancel(rest.trim()),
        _ => {}
    }
    match line_in_small.as_str() {
        "" => TypedMeaning::Nothing,
        "repeat" | "again" => TypedMeaning::Request(ListeningRequest::Repeat),
        "back" | "previous" => TypedMeaning::Request(ListeningRequest::Back),
        "more" => TypedMeaning::Request(ListeningRequest::More),
        "status" => TypedMeaning::Request(ListeningRequest::Status),
        "last" | "reply" | "last reply" => TypedMeaning::Request(ListeningRequest::LastReply),
        "exact" => TypedMeaning::Request(ListeningRequest::ExactText),
        "stop" => TypedMeaning::Stop,
        "hush" | "quiet" => TypedMeaning::Request(ListeningRequest::Hush),
        "skip" | "next" => TypedMeaning::Request(ListeningRequest::Skip),
        "slower" => TypedMeaning::Request(ListeningRequest::Pace(Pace::Slower)),
        "faster" => TypedMeaning::Request(ListeningRequest::Pace(Pace::Faster)),
        "decisions" => TypedMeaning::Request(ListeningRequest::OnlyDecisions(true)),
        "everything" => TypedMeaning::Request(ListeningRequest::OnlyDecisions(false)),
        "left" => TypedMeaning::Left,
        "away" => TypedMeaning::Away,
        "list" | "attention" => TypedMeaning::List,
        "help" | "?" => TypedMeaning::Help,
        "quit" | "exit" => TypedMeaning::Quit,
        _ => TypedMeaning::Words(line),
    }
}

/// The rate for the voice, limited to the valid range. Anything but a number is not about the rate.
fn rate(line: &str) -> Option<i8> {
    let number: i64 = line.strip_prefix("rate ")?.trim().parse().ok()?;
    i8::try_from(number.clamp(-100, 100)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_first_and_says_which_question_is_meant() {
        assert_eq!(read("2 yes\n"), TypedMeaning::To(2, "yes"));
        assert_eq!(read(" 12:  my own words "), TypedMeaning::To(12, "my own words"));
        assert_eq!(read("3. no"), TypedMeaning::To(3, "no"));
        assert_eq!(read("7"), TypedMeaning::Number(7));
        assert_eq!(read("2yes"), TypedMeaning::Words("2yes"));
        assert_eq!(read("-1 yes"), TypedMeaning::Words("-1 yes"));
    }

    #[test]
    fn wishes_are_single_words_and_everything_else_is_words() {
        assert_eq!(read("Repeat"), TypedMeaning::Request(ListeningRequest::Repeat));
        assert_eq!(
            (read("back"), read("More")),
            (
                TypedMeaning::Request(ListeningRequest::Back),
                TypedMeaning::Request(ListeningRequest::More)
            )
        );
        assert_eq!(read("2 more"), TypedMeaning::To(2, "more"));
        assert_eq!(read("Faster "), TypedMeaning::Request(ListeningRequest::Pace(Pace::Faster)));
        assert_eq!(read("decisions"), TypedMeaning::Request(ListeningRequest::OnlyDecisions(true)));
        assert_eq!(read("last reply"), TypedMeaning::Request(ListeningRequest::LastReply));
        assert_eq!((read("left"), read(" Away ")), (TypedMeaning::Left, TypedMeaning::Away));
        assert_eq!(read("left or right"), TypedMeaning::Words("left or right"));
        assert_eq!(read("quit"), TypedMeaning::Quit);
        assert_eq!(read("  \r\n"), TypedMeaning::Nothing);
        assert_eq!(read("yes"), TypedMeaning::Words("yes"));
        assert_eq!(read("quit smoking"), TypedMeaning::Words("quit smoking"));
    }

    #[test]
    fn words_for_agents_begin_with_a_verb() {
        assert_eq!(read("Tell Coder run  the tests"), TypedMeaning::Tell("Coder run  the tests"));
        assert_eq!(
            (read("tell"), read("cancel")),
            (TypedMeaning::Tell(""), TypedMeaning::Cancel(""))
        );
        assert_eq!(read("cancel Claude Code"), TypedMeaning::Cancel("Claude Code"));
        assert_eq!(read("2 cancel it"), TypedMeaning::To(2, "cancel it"), "an answer");
        assert_eq!(
            (read("stop"), read("hush")),
            (TypedMeaning::Stop, TypedMeaning::Request(ListeningRequest::Hush))
        );
    }

    #[test]
    fn a_rate_is_a_number_within_its_bounds() {
        let rate = |rate| TypedMeaning::Request(ListeningRequest::Pace(Pace::Rate(rate)));
        assert_eq!((read("rate 20"), read("Rate  -30 \n")), (rate(20), rate(-30)));
        assert_eq!((read("rate 500"), read("rate -99999999999")), (rate(100), rate(-100)));
        for words in ["rate", "rate of change", "rate 1 2", "rate 99999999999999999999", "rated 1"]
        {
            assert_eq!(read(words), TypedMeaning::Words(words));
        }
        assert_eq!(read("2 rate 20"), TypedMeaning::To(2, "rate 20"));
    }
}
