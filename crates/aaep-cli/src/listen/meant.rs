//! Which question typed words can be meant for (ruling 33). Pure: time is an argument.
//!
//! Words count only for what the person knew when they began to type, and consent only to what they had been told to
//! its end by then. Whatever came or went while they typed, the words are never turned to it.

use std::collections::VecDeque;
use std::time::Duration;

use aaep_announce::AskNumber;
use aaep_announce::device::lines;

/// How long a question must have been told at least before a yes without a number can be meant for it.
const HEARD_FOR: Duration = Duration::from_secs(1);

/// How fast someone who reads lines fast reads. Nobody has read a question any sooner.
const FAST_WORDS_PER_MINUTE: u64 = 400;

/// How long after the end of a question a yes without a number may still be meant for that one.
const MEANT_FOR_THE_LAST: Duration = Duration::from_secs(5);

/// How many questions that are over are remembered, for words that were begun before.
const MAX_OVER: usize = 64;

/// How far the person was told a question.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Since when they are being told.
    since: Option<Duration>,
    /// Which devices told it to its end, and when.
    whole: Vec<(&'static str, Duration)>,
    /// How long it takes at least to read it in lines.
    reading: Duration,
    /// Which devices are done with telling it.
    presented: Vec<&'static str>,
}

impl Told {
    /// A question of this many words, which nobody has been told yet.
    pub(super) fn new(words: u64) -> Self {
        let reading = Duration::from_millis(words.saturating_mul(60_000) / FAST_WORDS_PER_MINUTE);
        Told { reading, ..Told::default() }
    }

    /// They are being told, as of this moment. Devices report in any order.
    pub(super) fn begin(&mut self, at: Duration) {
        self.since = Some(self.since.map_or(at, |since| since.min(at)));
    }

    /// A device told it to its end.
    pub(super) fn end(&mut self, device: &'static str, at: Duration) {
        self.begin(at);
        self.whole.push((device, at));
    }

    /// A device is done with telling it.
    pub(super) fn present(&mut self, device: &'static str) {
        self.presented.push(device);
    }

    /// Whether all of these devices are done with telling it, and at least one is.
    pub(super) fn is_presented_by(&self, devices: &[&str]) -> bool {
        !self.presented.is_empty() && devices.iter().all(|it| self.presented.contains(it))
    }

    /// Whether they had begun to be told at this moment.
    pub(super) fn has_begun_at(&self, at: Duration) -> bool {
        self.since.is_some_and(|since| since <= at)
    }

    /// Whether they had been told to its end at this moment. Beside a device that takes its time, lines that were
    /// written at once prove nothing: `has_paced` says whether there is one that works.
    pub(super) fn is_whole_at(&self, at: Duration, has_paced: bool) -> bool {
        let counts = |device: &str| device != lines::NAME || !has_paced;
        self.whole.iter().any(|(device, since)| counts(device) && *since <= at)
    }
}

/// From when to when questions were told that are over, and under which numbers, the newest last.
#[derive(Debug, Default)]
pub(super) struct Over(VecDeque<(Duration, Duration, AskNumber)>);

impl Over {
    /// A question is over as of now.
    pub(super) fn add(&mut self, number: AskNumber, told: &Told, now: Duration) {
        if let Some(since) = told.since {
            self.0.push_back((since, now, number));
            if self.0.len() > MAX_OVER {
                self.0.pop_front();
            }
        }
    }

    /// Whether a question had this number.
    pub(super) fn had(&self, number: AskNumber) -> bool {
        self.0.iter().any(|(_, _, it)| *it == number)
    }
}

/// Why words without a number are not taken as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotBare {
    /// Nothing waits.
    Nothing,
    /// Several wait.
    Several,
    /// Something else was asked when the person began to type, or nothing was.
    Another,
    /// The question that was there when the person began to type is over, and nothing else waits.
    Over,
    /// It is not sure that the person means this one, and why.
    Unsure(AskNumber, Doubt),
}

/// Why it is not sure that the person means a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// They began to type this long after it came, and it takes this long to hear or read it.
    TooSoon { after: Duration, takes: Duration },
    /// Another one ended just before they began to type.
    AfterAnother,
}

/// Which question words without a number are meant for that were begun at this moment: the only one that the person
/// knew then, if nothing came or went since. A no needs less care than a yes, but it must be meant for it as well. A device
/// that takes its time (`has_paced`) tells itself when the question was told; lines have to be read.
pub(super) fn bare<'a>(
    waiting: impl Iterator<Item = (AskNumber, &'a Told)>,
    over: &Over,
    begun: Duration,
    is_refusal: bool,
    has_paced: bool,
) -> Result<AskNumber, NotBare> {
    // One that nobody has been told of yet cannot be meant.
    let known: Vec<(AskNumber, &Told)> = waiting.filter(|(_, it)| it.since.is_some()).collect();
    let is_gone = over.0.iter().any(|(told, over, _)| *told <= begun && begun < *over);
    if is_gone || known.iter().any(|(_, it)| !it.has_begun_at(begun)) {
        return Err(if known.is_empty() { NotBare::Over } else { NotBare::Another });
    }
    let (number, told) = match known.as_slice() {
        [] => return Err(NotBare::Nothing),
        [only] => *only,
        _ => return Err(NotBare::Several),
    };
    let is_later = |at: Duration, pause| begun.saturating_sub(at) >= pause;
    let heard_for = if has_paced { HEARD_FOR } else { HEARD_FOR.max(told.reading) };
    let after = begun.saturating_sub(told.since.unwrap_or(begun));
    let is_alone = over.0.back().is_none_or(|(_, over, _)| is_later(*over, MEANT_FOR_THE_LAST));
    match (after >= heard_for, is_alone) {
        _ if is_refusal => Ok(number),
        (true, true) => Ok(number),
        (false, _) => Err(NotBare::Unsure(number, Doubt::TooSoon { after, takes: heard_for })),
        (true, false) => Err(NotBare::Unsure(number, Doubt::AfterAnother)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    /// A question that lines told to its end at this second.
    fn told(second: u64) -> Told {
        let mut told = Told::default();
        told.end(lines::NAME, at(second));
        told
    }

    fn meant(
        waiting: &[(AskNumber, Told)],
        over: &[(u64, u64)],
        begun: u64,
        is_refusal: bool,
    ) -> Result<AskNumber, NotBare> {
        let over = Over(over.iter().map(|(told, over)| (at(*told), at(*over), 1)).collect());
        bare(waiting.iter().map(|(number, it)| (*number, it)), &over, at(begun), is_refusal, false)
    }

    #[test]
    fn words_are_for_the_only_question_that_was_there_when_they_were_begun() {
        for is_refusal in [false, true] {
            assert_eq!(meant(&[(1, told(10))], &[], 20, is_refusal), Ok(1));
            assert_eq!(meant(&[], &[], 20, is_refusal), Err(NotBare::Nothing));
            let two = [(1, told(10)), (2, told(15))];
            assert_eq!(meant(&two, &[], 20, is_refusal), Err(NotBare::Several));
        }
    }

    #[test]
    fn words_that_were_begun_before_a_question_came_answer_nothing() {
        for is_refusal in [false, true] {
            let another = Err(NotBare::Another);
            assert_eq!(meant(&[(2, told(30))], &[], 20, is_refusal), another, "nothing was asked");
            let two = [(1, told(10)), (2, told(30))];
            assert_eq!(meant(&two, &[], 20, is_refusal), another, "one more came");
            assert_eq!(meant(&[(2, told(30))], &[(10, 25)], 20, is_refusal), another, "replaced");
            // Expired, withdrawn or answered elsewhere: it is all the same.
            let older = [(2, told(5))];
            assert_eq!(meant(&older, &[(10, 25)], 20, is_refusal), another, "one of two went");
            assert_eq!(meant(&[], &[(10, 25)], 20, is_refusal), Err(NotBare::Over));
        }
    }

    #[test]
    fn a_question_that_nobody_was_told_of_is_not_meant() {
        let both = [(1, told(10)), (2, Told::default())];
        assert_eq!(meant(&both, &[], 20, false), Ok(1));
    }

    #[test]
    fn a_yes_without_a_number_needs_time_and_a_no_does_not() {
        let too_soon = Doubt::TooSoon { after: at(0), takes: at(1) };
        assert_eq!(meant(&[(1, told(10))], &[], 10, false), Err(NotBare::Unsure(1, too_soon)));
        assert_eq!(meant(&[(1, told(10))], &[], 10, true), Ok(1));
        let after_another = Err(NotBare::Unsure(2, Doubt::AfterAnother));
        assert_eq!(meant(&[(2, told(10))], &[(5, 10)], 14, false), after_another);
        assert_eq!(meant(&[(2, told(10))], &[(5, 10)], 15, false), Ok(2));
    }

    #[test]
    fn a_long_question_takes_longer_to_read_before_a_yes_without_a_number_is_meant_for_it() {
        let over = Over::default();
        let bare_at = |second, is_refusal, has_paced| {
            let mut long = Told::new(200);
            long.end(lines::NAME, at(10));
            bare(std::iter::once((1, &long)), &over, at(second), is_refusal, has_paced)
        };
        let too_soon = Doubt::TooSoon { after: at(29), takes: at(30) };
        assert_eq!(bare_at(39, false, false), Err(NotBare::Unsure(1, too_soon)), "half a minute");
        assert_eq!(bare_at(40, false, false), Ok(1));
        assert_eq!(bare_at(10, true, false), Ok(1), "a no needs no reading");
        assert_eq!(bare_at(11, false, true), Ok(1), "a voice says when it has ended");
    }

    #[test]
    fn lines_beside_a_voice_do_not_tell_to_the_end() {
        let mut told = told(10);
        assert!(told.is_whole_at(at(11), false) && !told.is_whole_at(at(11), true));
        assert!(!told.is_whole_at(at(9), false), "begun before");
        told.end("speech", at(30));
        assert!(!told.is_whole_at(at(29), true), "begun in the midst of it");
        assert!(told.is_whole_at(at(30), true));
    }

    #[test]
    fn the_time_counts_from_when_the_slowest_device_has_told_the_question() {
        let mut told = Told::default();
        assert!(!told.is_presented_by(&[]), "nobody has told it");
        told.present(lines::NAME);
        assert!(
            !told.is_presented_by(&[lines::NAME, "speech"]),
            "the voice has not come to its end"
        );
        assert!(told.is_presented_by(&[lines::NAME]), "the voice does not work");
        told.present("speech");
        assert!(told.is_presented_by(&[lines::NAME, "speech"]));
    }

    #[test]
    fn what_is_over_is_remembered_within_a_bound() {
        let mut over = Over::default();
        for (number, second) in (0..1000).zip(0..) {
            over.add(number, &told(second), at(second + 1));
        }
        over.add(2000, &Told::default(), at(2000));
        assert_eq!((over.0.len(), over.0.back()), (MAX_OVER, Some(&(at(999), at(1000), 999))));
        assert!(over.had(999) && !over.had(0) && !over.had(2000));
    }
}
