//! `aaep answer`: answers a question by its number, from anywhere, for example from a key binding.
//!
//! It answers exactly the question that the person was told under that number, or nothing. It consents only to
//! questions that they had been told completely before (ruling 33).

pub(crate) mod meaning;
mod send;

use std::process::ExitCode;

use aaep::LanguageTag;
use clap::Args;

use crate::attention::file::NumbersFile;
use crate::attention::numbers::HIGHEST;
use crate::attention::{gather, gather_own, told_whole, words};
use crate::console::{self, COULD_NOT, CommandFailure};
use crate::english::{answers, failures};
use crate::hubs::HubFlags;
use crate::keys::{now_unix_ms, tell};
use send::{AnswerResult, TypedAnswer};

const WORDS: &str = "\
For example: aaep answer 2 yes
Possible answers:
  yes, accept, allow or approve   consent. No other word is consent, not even ok or sure
  no, n, reject, deny or refuse   no consent
  later, extend or more time      more time; how much can follow, as in: later 120, or: later 5 minutes
  pause, resume                   let the time stand still, or go on
  the letter or words of a choice, yes or no, a number, or your own words, where that is asked
Exit codes:
  0  your answer counts
  1  it does not count: it was unclear, the hub refused it, the question is over, or somebody answered before you
  2  it could not be sent, or it is not known whether it counts; to find out: aaep attention";

/// What to answer.
#[derive(Debug, Args)]
#[command(after_help = WORDS)]
pub(crate) struct AnswerOptions {
    /// The number of the question, as `aaep attention` lists it. Without a number, all pending questions are listed.
    #[arg(value_parser = clap::value_parser!(u16).range(1..=i64::from(HIGHEST)))]
    number: Option<u16>,
    /// Your answer. Without one, the question and the possible answers are shown.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<String>,
    /// Take the words literally as the answer, even if they could mean something else, such as later.
    #[arg(long)]
    text: bool,
    #[command(flatten)]
    hub: HubFlags,
}

/// Answers and reports the result.
pub(crate) fn run(arguments: &AnswerOptions) -> Result<ExitCode, CommandFailure> {
    let begun_unix_ms = now_unix_ms();
    let Some(number) = arguments.number else { return tell_all(arguments) };
    let file = NumbersFile::own()?;
    let Some(question) = file.look()?.question(number).cloned() else {
        tell(&answers::no_such_question(number))?;
        return Ok(ExitCode::from(1));
    };
    if question.address.trim_start().to_ascii_lowercase().starts_with("stdio:") {
        return Err(CommandFailure::new(failures::CHILD_AGENT, failures::ANSWER_THERE));
    }
    if arguments.words.is_empty() {
        return tell_one(arguments, number, &question.address);
    }
    let words = arguments.words.join(" ");
    let hub = arguments.hub.hub_at(&question.address);
    let said = TypedAnswer {
        number,
        question: &question,
        file: &file,
        words: &words,
        as_they_stand: arguments.text,
        begun_unix_ms,
        token: hub.token.as_deref(),
        languages: languages(arguments),
    };
    let result = runtime()?.block_on(send::send(&said))?;
    report(&file, &question.reply_token, result)
}

/// Reports the result of an answer. A question that is over keeps its number only until the number is given again.
fn report(
    file: &NumbersFile,
    reply_token: &str,
    result: AnswerResult,
) -> Result<ExitCode, CommandFailure> {
    let is_over = matches!(result, AnswerResult::Settled(_) | AnswerResult::Over(_));
    let (sentence, code) = match result {
        AnswerResult::Settled(sentence) | AnswerResult::Waits(sentence) => (sentence, 0),
        AnswerResult::NotDone(sentence) | AnswerResult::Over(sentence) => (sentence, 1),
        AnswerResult::Unknown(sentence) => (sentence, COULD_NOT),
    };
    tell(&sentence)?;
    if is_over && let Ok(token) = aaep::ReplyToken::parse(reply_token) {
        // The result stands, whether or not the file can be written.
        let now_unix_s = now_unix_ms() / 1000;
        let noted = file.change(|numbers| numbers.mark_over(now_unix_s, &token));
        noted.unwrap_or_else(|it| console::complain(&it));
    }
    Ok(ExitCode::from(code))
}

/// Without a number: lists all questions.
fn tell_all(arguments: &AnswerOptions) -> Result<ExitCode, CommandFailure> {
    let queue = gather_own(&arguments.hub.listen()?, arguments.hub.token())?;
    queue.tell()?;
    Ok(queue.exit_code())
}

/// Without an answer: tells the question and the possible answers.
fn tell_one(
    arguments: &AnswerOptions,
    number: u16,
    address: &str,
) -> Result<ExitCode, CommandFailure> {
    let languages = languages(arguments).unwrap_or_default();
    let queue = gather(&[arguments.hub.hub_at(address)], &languages)?;
    if queue.is_incomplete {
        return Ok(ExitCode::from(COULD_NOT));
    }
    match queue.questions.iter().find(|(known, _)| *known == Some(number)) {
        Some((_, waiting)) => {
            for line in words::block(Some(number), waiting) {
                tell(&line)?;
            }
            told_whole(std::iter::once(waiting))?;
            tell(&words::what_can_be_said(number, &waiting.event))?;
        }
        None => tell(&answers::is_over(number))?,
    }
    Ok(ExitCode::from(1))
}

/// The languages in which the person is told questions, so that the hub sends the words they know. Unusable settings
/// must not keep anyone from saying no.
fn languages(arguments: &AnswerOptions) -> Option<Vec<LanguageTag>> {
    match arguments.hub.listen() {
        Ok(listen) => listen.language_tags(),
        Err(failure) => {
            console::complain(&failure);
            None
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, CommandFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| CommandFailure::new(failures::no_threads(&error), failures::TRY_LATER))
}
