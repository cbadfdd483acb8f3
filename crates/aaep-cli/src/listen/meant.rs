//! Decides which ask typed words can refer to (ruling 33). Pure: time is an argument.
//!
//! Words count only for what the person knew when they began to type, and consent only to what they had been told
//! completely by then. Whatever came or went while they typed, the words are never applied to it.

use std::collections::VecDeque;
use std::time::Duration;

use aaep_announce::AskNumber;
use aaep_announce::device::lines;

/// How long an ask must have been told before a yes without a number can refer to it.
const HEARD_FOR: Duration = Duration::from_secs(1);

/// The speed of a fast reader of lines. Nobody reads a question faster.
const FAST_WORDS_PER_MINUTE: u64 = 400;

/// How long after the end of an ask a yes without a number may still refer to it.
const MEANT_FOR_THE_LAST: Duration = Duration::from_secs(5);

/// How many ended asks are remembered, for words that were begun before they ended.
const MAX_PAST: usize = 64;

/// How far an ask was told to the person.
#[derive(Debug, Default)]
pub(crate) struct TellingProgress {
    /// When telling it began.
    since: Option<Duration>,
    /// Which devices told it completely, and when.
    whole: Vec<(&'static str, Duration)>,
    /// The shortest time in which it can be read as lines.
    reading: Duration,
    /// Which devices have presented it.
    presented: Vec<&'static str>,
    /// When its agent last said something else.
    spoken_over: Option<Duration>,
}

impl TellingProgress {
    /// The progress of an ask with this many words that was not told yet.
    pub(crate) fn new(words: u64) -> Self {
        let reading = Duration::from_millis(words.saturating_mul(60_000) / FAST_WORDS_PER_MINUTE);
        TellingProgress { reading, ..TellingProgress::default() }
    }

    /// Telling began at this moment. Devices report in any order.
    pub(crate) fn begin(&mut self, at: Duration) {
        self.since = Some(self.since.map_or(at, |since| since.min(at)));
    }

    /// A device told it completely.
    pub(crate) fn end(&mut self, device: &'static str, at: Duration) {
        self.begin(at);
        self.whole.push((device, at));
    }

    /// A device has presented it.
    pub(crate) fn present(&mut self, device: &'static str) {
        self.presented.push(device);
    }

    /// Its agent says something else at this moment.
    pub(crate) fn speak_over(&mut self, at: Duration) {
        self.spoken_over = self.spoken_over.max(Some(at));
    }

    /// Whether, at this moment, its agent had said something else since it was told completely. That may have sounded
    /// like another question.
    pub(crate) fn is_spoken_over_at(&self, at: Duration) -> bool {
        self.spoken_over.is_some_and(|spoken| {
            spoken <= at && self.whole.iter().all(|(_, told)| *told <= spoken)
        })
    }

    /// Whether at least one device, and all of these, have presented it.
    pub(crate) fn is_presented_by(&self, devices: &[&str]) -> bool {
        !self.presented.is_empty() && devices.iter().all(|it| self.presented.contains(it))
    }

    /// Whether telling had begun by this moment.
    pub(crate) fn has_begun_at(&self, at: Duration) -> bool {
        self.since.is_some_and(|since| since <= at)
    }

    /// Whether it had been told completely by this moment. If a paced device works (`has_paced`), lines that were
    /// written at once prove nothing.
    pub(crate) fn is_whole_at(&self, at: Duration, has_paced: bool) -> bool {
        let counts = |device: &str| device != lines::NAME || !has_paced;
        self.whole.iter().any(|(device, since)| counts(device) && *since <= at)
    }
}

/// Ended asks: from when to when they were told, and their numbers, newest last.
#[derive(Debug, Default)]
pub(crate) struct PastAsks(VecDeque<(Duration, Duration, AskNumber)>);

impl PastAsks {
    /// Adds an ask that ends now.
    pub(crate) fn add(&mut self, number: AskNumber, told: &TellingProgress, now: Duration) {
        if let Some(since) = told.since {
            self.0.push_back((since, now, number));
            if self.0.len() > MAX_PAST {
                self.0.pop_front();
            }
        }
    }

    /// Whether an ended ask had this number.
    pub(crate) fn had(&self, number: AskNumber) -> bool {
        self.0.iter().any(|(_, _, it)| *it == number)
    }
}

/// Why words without a number are not taken as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnnumberedRefusal {
    /// No ask is open.
    Nothing,
    /// Several asks are open.
    Several,
    /// When the person began to type, another ask was open, or none.
    Another,
    /// The ask that was open when the person began to type has ended, and no other is open.
    Over,
    /// The person may not mean this one.
    Unsure(AskNumber, AskDoubt),
}

/// Why the person may not mean an ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskDoubt {
    /// They began to type this long after it was told, and hearing or reading it takes this long.
    TooSoon { after: Duration, takes: Duration },
    /// Another ask ended just before they began to type.
    AfterAnother,
}

/// Which ask words without a number refer to, if they were begun at this moment: the only one that the person knew
/// then, if none came or went since. A no needs less certainty than a yes, but it must refer to that ask, too. A
/// paced device (`has_paced`) reports when the ask was told; lines have to be read.
pub(crate) fn find_unnumbered<'a>(
    waiting: impl Iterator<Item = (AskNumber, &'a TellingProgress)>,
    over: &PastAsks,
    begun: Duration,
    is_refusal: bool,
    has_paced: bool,
) -> Result<AskNumber, UnnumberedRefusal> {
    // An ask that was not told yet cannot be meant.
    let known: Vec<(AskNumber, &TellingProgress)> =
        waiting.filter(|(_, it)| it.since.is_some()).collect();
    let is_gone = over.0.iter().any(|(told, over, _)| *told <= begun && begun < *over);
    if is_gone || known.iter().any(|(_, it)| !it.has_begun_at(begun)) {
        return Err(if known.is_empty() {
            UnnumberedRefusal::Over
        } else {
            UnnumberedRefusal::Another
        });
    }
    let (number, told) = match known.as_slice() {
        [] => return Err(UnnumberedRefusal::Nothing),
        [only] => *only,
        _ => return Err(UnnumberedRefusal::Several),
    };
    let is_later = |at: Duration, pause| begun.saturating_sub(at) >= pause;
    let heard_for = if has_paced { HEARD_FOR } else { HEARD_FOR.max(told.reading) };
    let after = begun.saturating_sub(told.since.unwrap_or(begun));
    let is_alone = over.0.back().is_none_or(|(_, over, _)| is_later(*over, MEANT_FOR_THE_LAST));
    match (after >= heard_for, is_alone) {
        _ if is_refusal => Ok(number),
        (true, true) => Ok(number),
        (false, _) => {
            Err(UnnumberedRefusal::Unsure(number, AskDoubt::TooSoon { after, takes: heard_for }))
        }
        (true, false) => Err(UnnumberedRefusal::Unsure(number, AskDoubt::AfterAnother)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    /// An ask that lines told completely at this second.
    fn told(second: u64) -> TellingProgress {
        let mut told = TellingProgress::default();
        told.end(lines::NAME, at(second));
        told
    }

    fn meant(
        waiting: &[(AskNumber, TellingProgress)],
        over: &[(u64, u64)],
        begun: u64,
        is_refusal: bool,
    ) -> Result<AskNumber, UnnumberedRefusal> {
        let over = PastAsks(over.iter().map(|(told, over)| (at(*told), at(*over), 1)).collect());
        find_unnumbered(
            waiting.iter().map(|(number, it)| (*number, it)),
            &over,
            at(begun),
            is_refusal,
            false,
        )
    }

    #[test]
    fn words_are_for_the_only_question_that_was_there_when_they_were_begun() {
        for is_refusal in [false, true] {
            assert_eq!(meant(&[(1, told(10))], &[], 20, is_refusal), Ok(1));
            assert_eq!(meant(&[], &[], 20, is_refusal), Err(UnnumberedRefusal::Nothing));
            let two = [(1, told(10)), (2, told(15))];
            assert_eq!(meant(&two, &[], 20, is_refusal), Err(UnnumberedRefusal::Several));
        }
    }

    #[test]
    fn words_that_were_begun_before_a_question_came_answer_nothing() {
        for is_refusal in [false, true] {
            let another = Err(UnnumberedRefusal::Another);
            assert_eq!(meant(&[(2, told(30))], &[], 20, is_refusal), another, "nothing was asked");
            let two = [(1, told(10)), (2, told(30))];
            assert_eq!(meant(&two, &[], 20, is_refusal), another, "one more came");
            assert_eq!(meant(&[(2, told(30))], &[(10, 25)], 20, is_refusal), another, "replaced");
            // It makes no difference whether it expired, was withdrawn or was answered elsewhere.
            let older = [(2, told(5))];
            assert_eq!(meant(&older, &[(10, 25)], 20, is_refusal), another, "one of two went");
            assert_eq!(meant(&[], &[(10, 25)], 20, is_refusal), Err(UnnumberedRefusal::Over));
        }
    }

    #[test]
    fn a_question_that_nobody_was_told_of_is_not_meant() {
        let both = [(1, told(10)), (2, TellingProgress::default())];
        assert_eq!(meant(&both, &[], 20, false), Ok(1));
    }

    #[test]
    fn a_yes_without_a_number_needs_time_and_a_no_does_not() {
        let too_soon = AskDoubt::TooSoon { after: at(0), takes: at(1) };
        assert_eq!(
            meant(&[(1, told(10))], &[], 10, false),
            Err(UnnumberedRefusal::Unsure(1, too_soon))
        );
        assert_eq!(meant(&[(1, told(10))], &[], 10, true), Ok(1));
        let after_another = Err(UnnumberedRefusal::Unsure(2, AskDoubt::AfterAnother));
        assert_eq!(meant(&[(2, told(10))], &[(5, 10)], 14, false), after_another);
        assert_eq!(meant(&[(2, told(10))], &[(5, 10)], 15, false), Ok(2));
    }

    #[test]
    fn a_long_question_takes_longer_to_read_before_a_yes_without_a_number_is_meant_for_it() {
        let over = PastAsks::default();
        let bare_at = |second, is_refusal, has_paced| {
            let mut long = TellingProgress::new(200);
            long.end(lines::NAME, at(10));
            find_unnumbered(std::iter::once((1, &long)), &over, at(second), is_refusal, has_paced)
        };
        let too_soon = AskDoubt::TooSoon { after: at(29), takes: at(30) };
        assert_eq!(
            bare_at(39, false, false),
            Err(UnnumberedRefusal::Unsure(1, too_soon)),
            "half a minute"
        );
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
    fn what_its_agent_says_after_a_question_counts_until_the_question_is_told_again() {
        let mut told = told(10);
        assert!(!told.is_spoken_over_at(at(30)));
        told.speak_over(at(9));
        assert!(!told.is_spoken_over_at(at(30)), "it came before");
        told.speak_over(at(20));
        assert!(!told.is_spoken_over_at(at(19)), "the answer was begun before");
        assert!(told.is_spoken_over_at(at(20)));
        told.speak_over(at(15));
        told.end(lines::NAME, at(18));
        assert!(told.is_spoken_over_at(at(30)), "the last words count");
        told.end(lines::NAME, at(25));
        assert!(!told.is_spoken_over_at(at(30)), "it was told again");
    }

    #[test]
    fn the_time_counts_from_when_the_slowest_device_has_told_the_question() {
        let mut told = TellingProgress::default();
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
        let mut over = PastAsks::default();
        for (number, second) in (0..1000).zip(0..) {
            over.add(number, &told(second), at(second + 1));
        }
        over.add(2000, &TellingProgress::default(), at(2000));
        assert_eq!((over.0.len(), over.0.back()), (MAX_PAST, Some(&(at(999), at(1000), 999))));
        assert!(over.had(999) && !over.had(0) && !over.had(2000));
    }
}
