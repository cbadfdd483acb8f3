//! The numbers by which people answer: small, and never referring to another question by accident.
//!
//! They run from 1 to 99 and start over. A number is reused only after all others were used, never while its question
//! can be open, and not for some minutes afterwards, because someone may be typing an answer to it (ruling 33). While
//! all of them are taken, higher numbers are used. A question keeps its number. Pure: `file.rs` keeps the numbers on
//! the disk.

use std::collections::BTreeMap;

use aaep::ReplyToken;
use serde::{Deserialize, Serialize};

use super::asked::PresentedAsk;

/// The highest number used while any is free. Two digits are quick to say and to type.
const HIGHEST_SHORT: u16 = 99;

/// The highest number of all. It bounds the size of the file.
pub(crate) const HIGHEST: u16 = 499;

/// For how many seconds after the end of its question a number is not reused.
const REST_SECONDS: u64 = 600;

/// How much later than its longest time a question counts as over, because clocks differ.
const SLACK_SECONDS: i64 = 300;

/// The most hashes of words that are kept for a question.
const MAX_WORDS: usize = 64;

/// The longest text kept for a question, in bytes.
const MAX_TEXT_BYTES: usize = 4096;

/// The numbers and the questions they refer to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskNumbers {
    /// The short number that was assigned last; 0 before the first.
    last: u16,
    /// The question of each number, also after that question is over.
    questions: BTreeMap<u16, RememberedAsk>,
}

/// The question behind a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RememberedAsk {
    /// The hub where it was heard last.
    pub(crate) address: String,
    /// Its reply token.
    pub(crate) reply_token: String,
    /// The agent that asks. Untrusted text.
    pub(crate) agent: String,
    /// The name that the person heard for the agent, numbered if several have that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent_label: Option<String>,
    /// Its first words. Untrusted text.
    pub(crate) first_words: String,
    /// A hash of everything that no language changes.
    identity: String,
    /// Hashes of the words in which the person was told it.
    words: Vec<String>,
    /// Whether it was open when last checked.
    is_open: bool,
    /// When it was last seen open, in seconds since 1970 began.
    seen_unix_s: i64,
    /// When it ends at the latest.
    until_unix_s: i64,
    /// When its end was noticed, in seconds since 1970 began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    over_unix_s: Option<i64>,
    /// When the person had been told it completely, in milliseconds since 1970 began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    presented_unix_ms: Option<i64>,
}

/// How a question that is about to be answered differs from the one the person was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskMismatch {
    /// It is another question.
    Question,
    /// It has words that the person was not told.
    Words,
}

impl RememberedAsk {
    /// Checks that an ask is the one behind this number, in words that the person was told.
    pub(crate) fn check(&self, asked: &PresentedAsk) -> Result<(), AskMismatch> {
        if self.reply_token != asked.reply_token.as_str() || self.identity != asked.identity {
            return Err(AskMismatch::Question);
        }
        let is_told = |words: &String| self.words.contains(words);
        if !asked.words.is_empty() && asked.words.iter().all(is_told) {
            Ok(())
        } else {
            Err(AskMismatch::Words)
        }
    }

    /// Whether the person had been told it completely by this moment, so that an answer can refer to it.
    pub(crate) fn was_presented(&self, by_unix_ms: i64) -> bool {
        self.presented_unix_ms.is_some_and(|at| at <= by_unix_ms)
    }

    fn is(&self, asked: &PresentedAsk) -> bool {
        self.reply_token == asked.reply_token.as_str() && self.identity == asked.identity
    }

    /// Whether it can still be open: its end was not noticed, and its time is not over.
    fn may_be_open(&self, now_unix_s: i64) -> bool {
        self.is_open && now_unix_s < self.until_unix_s
    }

    /// Whether its number must not be reused: it can be open, or it ended only recently.
    fn holds_number(&self, now_unix_s: i64) -> bool {
        let ended_unix_s = if self.is_open { Some(self.until_unix_s) } else { self.over_unix_s };
        // If the clock was set back, the time since then is unknown, and the number is not held back.
        let is_resting = |ended: i64| now_unix_s.abs_diff(ended) < REST_SECONDS;
        self.may_be_open(now_unix_s) || ended_unix_s.is_some_and(is_resting)
    }

    fn end(&mut self, now_unix_s: i64) {
        if self.is_open {
            self.is_open = false;
            self.over_unix_s = Some(now_unix_s);
        }
    }
}

impl AskNumbers {
    /// Assigns a number to a question that is open at an address and is told to the person. `None` if every number
    /// belongs to a question that is open or ended only recently.
    pub(crate) fn give(
        &mut self,
        now_unix_s: i64,
        address: &str,
        asked: &PresentedAsk,
    ) -> Option<u16> {
        let known = self.questions.iter().find(|(_, it)| it.is(asked)).map(|(number, _)| *number);
        let number = known.or_else(|| self.free(now_unix_s))?;
        if known.is_none() && number <= HIGHEST_SHORT {
            self.last = number;
        }
        // A number above 99 is kept only as long as it must be.
        self.questions.retain(|it, question| {
            *it <= HIGHEST_SHORT || *it == number || question.holds_number(now_unix_s)
        });
        let longest = i64::try_from(asked.longest_seconds).unwrap_or(i64::MAX);
        let until_unix_s = now_unix_s.saturating_add(longest).saturating_add(SLACK_SECONDS);
        let before = self.questions.remove(&number).filter(|it| it.is(asked));
        // If the words differ, the question has to be told again.
        let same = before.as_ref().filter(|it| it.check(asked).is_ok());
        let presented_unix_ms = same.and_then(|it| it.presented_unix_ms);
        let agent_label = before.as_ref().and_then(|it| it.agent_label.clone());
        let mut words = before.map(|it| it.words).unwrap_or_default();
        for hash in &asked.words {
            if !words.contains(hash) && words.len() < MAX_WORDS {
                words.push(hash.clone());
            }
        }
        let question = RememberedAsk {
            address: address.to_owned(),
            reply_token: asked.reply_token.to_string(),
            agent: asked.agent.clone(),
            agent_label,
            first_words: asked.first_words.clone(),
            identity: asked.identity.clone(),
            words,
            is_open: true,
            seen_unix_s: now_unix_s,
            until_unix_s,
            over_unix_s: None,
            presented_unix_ms,
        };
        self.questions.insert(number, question);
        Some(number)
    }

    /// Records that the person was told a question completely, in these words. The first time counts.
    pub(crate) fn presented(&mut self, at_unix_ms: i64, asked: &PresentedAsk) {
        for question in self.questions.values_mut().filter(|it| it.check(asked).is_ok()) {
            question.presented_unix_ms.get_or_insert(at_unix_ms);
        }
    }

    /// Records the name that the person heard for the agent of a question. The first time counts.
    pub(crate) fn heard_as(&mut self, asked: &PresentedAsk, label: &str) {
        for question in self.questions.values_mut().filter(|it| it.is(asked)) {
            question.agent_label.get_or_insert_with(|| label.to_owned());
        }
    }

    /// The number of the question with this token, if the person was told it by this moment.
    pub(crate) fn told_number(&self, reply_token: &str, by_unix_ms: i64) -> Option<u16> {
        let is_it =
            |it: &RememberedAsk| it.reply_token == reply_token && it.was_presented(by_unix_ms);
        self.questions.iter().find(|(_, it)| is_it(it)).map(|(number, _)| *number)
    }

    pub(crate) fn question(&self, number: u16) -> Option<&RememberedAsk> {
        self.questions.get(&number)
    }

    /// Records that a question is over. Its number keeps referring to it until the number is reused.
    pub(crate) fn mark_over(&mut self, now_unix_s: i64, reply_token: &ReplyToken) {
        for question in self.questions.values_mut() {
            if question.reply_token == reply_token.as_str() {
                question.end(now_unix_s);
            }
        }
    }

    /// Records that these were all the questions open at an address at this moment.
    pub(crate) fn only_open(&mut self, looked_unix_s: i64, address: &str, open: &[PresentedAsk]) {
        for question in self.questions.values_mut() {
            let is_there = open.iter().any(|asked| question.is(asked));
            // A question that arrived during the query is not in the list but is open.
            if question.address == address && !is_there && question.seen_unix_s < looked_unix_s {
                question.end(looked_unix_s);
            }
        }
    }

    /// Whether everything is as we would have written it, so that a changed file cannot mislead.
    pub(crate) fn is_sound(&self) -> bool {
        let is_hash = |text: &String| {
            text.len() == 64 && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_short = |text: &String| text.len() <= MAX_TEXT_BYTES;
        self.last <= HIGHEST_SHORT
            && self.questions.iter().all(|(number, it)| {
                (1..=HIGHEST).contains(number)
                    && ReplyToken::parse(&it.reply_token).is_ok()
                    && [&it.address, &it.agent, &it.first_words].into_iter().all(is_short)
                    && it.agent_label.iter().all(is_short)
                    && is_hash(&it.identity)
                    && it.words.len() <= MAX_WORDS
                    && it.words.iter().all(is_hash)
            })
    }

    /// The next free short number, starting over after the highest; otherwise the lowest free long one.
    fn free(&self, now_unix_s: i64) -> Option<u16> {
        let last = self.last.min(HIGHEST_SHORT);
        let round = (last + 1..=HIGHEST_SHORT).chain(1..=last);
        let is_taken =
            |number: &u16| self.questions.get(number).is_some_and(|it| it.holds_number(now_unix_s));
        round.chain(HIGHEST_SHORT + 1..=HIGHEST).find(|number| !is_taken(number))
    }
}

#[cfg(test)]
mod tests;
