//! Sends an answer through the kit, to exactly the question that the person was told, and reports the result.

use std::future::Future;
use std::time::Duration;

use aaep::extension::{AskOutcome, DecidedBy};
use aaep::reply::Response;
use aaep::{LanguageTag, ReplyToken};
use aaep_subscriber::{
    Ask, AskState, CannotReply, ConnectError, News, SayError, Subscriber, Wishes, connect,
};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::meaning::{self, AnswerMeaning, UnclearAnswer};
use crate::attention::asked::PresentedAsk;
use crate::attention::file::NumbersFile;
use crate::attention::look;
use crate::attention::numbers::{AskMismatch, RememberedAsk};
use crate::attention::words::{sentence, what_can_be_said};
use crate::console::CommandFailure;
use crate::english::{answers, failures};
use crate::hubs::reach::can_look;

/// How long connecting to the producer may take.
const CONNECT_PATIENCE: Duration = Duration::from_secs(20);

/// How often connecting is tried, if the connection is closed before an answer. Nothing was answered yet.
const CONNECT_TRIES: u32 = 4;

/// The pause before connecting is tried again.
const CONNECT_PAUSE: Duration = Duration::from_millis(200);

/// How long a producer may take to send the question again to a new subscription.
const ASK_PATIENCE: Duration = Duration::from_secs(10);

/// How often to check meanwhile whether the question is still open.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long a producer may take to report the result of an answer.
const SETTLE_PATIENCE: Duration = Duration::from_secs(20);

/// How long after the settlement a refusal may still arrive, or after a refusal the settlement.
const REFUSAL_PATIENCE: Duration = Duration::from_millis(500);

/// How long closing the subscription may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// What the person said, and the question it answers.
#[derive(Debug)]
pub(super) struct TypedAnswer<'a> {
    pub(super) number: u16,
    pub(super) question: &'a RememberedAsk,
    /// The file that records which questions the person was told.
    pub(super) file: &'a NumbersFile,
    pub(super) words: &'a str,
    pub(super) as_they_stand: bool,
    /// The earliest moment at which the person can have answered.
    pub(super) begun_unix_ms: i64,
    pub(super) token: Option<&'a str>,
    pub(super) languages: Option<Vec<LanguageTag>>,
}

/// The result of an answer, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerResult {
    /// The person's answer settled the question.
    Settled(String),
    /// The person's request about time was applied. The question is still open.
    Waits(String),
    /// Nothing that the person said took effect.
    NotDone(String),
    /// The question ended for another reason.
    Over(String),
    /// The result is unknown.
    Unknown(String),
}

/// Sends the answer and returns the result.
pub(super) async fn send(said: &TypedAnswer<'_>) -> Result<AnswerResult, CommandFailure> {
    if is_gone(said).await {
        return Ok(over(said).await);
    }
    let mut wishes = Wishes::new("aaep-answer").name("aaep answer").time_from_presented();
    wishes.bearer = said.token.map(str::to_owned);
    wishes.capabilities.languages.clone_from(&said.languages);
    let connecting = async {
        for _ in 1..CONNECT_TRIES {
            match connect(&said.question.address, wishes.clone()).await {
                Err(ConnectError::Line(_) | ConnectError::NoLine(_)) => {
                    tokio::time::sleep(CONNECT_PAUSE).await;
                }
                connected => return connected,
            }
        }
        connect(&said.question.address, wishes).await
    };
    let connected = timeout(CONNECT_PATIENCE, connecting).await;
    let next = failures::SEE_HUB_AND_ATTENTION;
    let Ok(connected) = connected else {
        return Err(CommandFailure::new(failures::NO_HUB_FOR_ANSWER, next));
    };
    let why = |error: ConnectError| answers::nothing_sent(&error.to_string());
    let mut subscriber =
        connected.map_err(|error| CommandFailure::of_sentences(&why(error), next))?;
    let came = say_to(said, &mut subscriber).await;
    // If the goodbye takes too long, leave without it. Other subscribers are not affected.
    let _ = timeout(GOODBYE, subscriber.close(None)).await;
    came
}

async fn say_to(
    said: &TypedAnswer<'_>,
    subscriber: &mut Subscriber,
) -> Result<AnswerResult, CommandFailure> {
    let Some(ask) = wait_for_it(said, subscriber).await? else { return Ok(over(said).await) };
    if !ask.can_reply() {
        return Err(CommandFailure::new(failures::MAY_NOT_ANSWER, failures::USE_REPLY_TOKEN));
    }
    if let Some(differs) = differs(said, &ask) {
        return Ok(AnswerResult::NotDone(differs));
    }
    let payload = &ask.event().payload;
    let meaning = match meaning::understand(payload, said.words, said.as_they_stand) {
        Ok(meaning) => meaning,
        Err(UnclearAnswer(why)) => {
            let can = what_can_be_said(said.number, ask.event());
            return Ok(AnswerResult::NotDone(format!("{} {can}", answers::nothing_answered(&why))));
        }
    };
    if meaning.lets_happen() && !was_presented(said) {
        return Ok(AnswerResult::NotDone(answers::not_heard_whole(said.number)));
    }
    Ok(match meaning {
        AnswerMeaning::Extend(_) | AnswerMeaning::Pause | AnswerMeaning::Resume => {
            change_time(subscriber, &ask, &meaning).await
        }
        answer => reply(said.number, subscriber, &ask, &answer).await,
    })
}

/// Whether the person was told the question completely before they answered. Another subscriber may have recorded
/// that only just now, so this reads the file again.
fn was_presented(said: &TypedAnswer<'_>) -> bool {
    let newest = said.file.look().ok();
    let newest = newest.as_ref().and_then(|it| it.question(said.number));
    newest.is_some_and(|it| {
        it.reply_token == said.question.reply_token && it.was_presented(said.begun_unix_ms)
    })
}

/// Waits until the producer sends the question, which is the first thing that a new subscription receives. `None`
/// if the question is over.
async fn wait_for_it(
    said: &TypedAnswer<'_>,
    subscriber: &mut Subscriber,
) -> Result<Option<Ask>, CommandFailure> {
    let until = Instant::now() + ASK_PATIENCE;
    while Instant::now() < until {
        let look_at = (Instant::now() + LOOK_EVERY).min(until);
        while let Ok(news) = timeout_at(look_at, subscriber.next()).await {
            match news {
                Some(News::Ask(ask)) if ask.reply_token().as_str() == said.question.reply_token => {
                    return Ok(Some(ask));
                }
                Some(News::Ended(why)) => {
                    return Err(CommandFailure::of_sentences(
                        &why.to_string(),
                        failures::RUN_ATTENTION,
                    ));
                }
                Some(_) => {}
                None => {
                    return Err(CommandFailure::new(
                        failures::HUB_IS_GONE,
                        failures::RUN_ATTENTION,
                    ));
                }
            }
        }
        if is_gone(said).await {
            return Ok(None);
        }
    }
    // It may still be open, so it must not be called over.
    Err(CommandFailure::new(failures::QUESTION_DID_NOT_COME, failures::RUN_ATTENTION))
}

/// The message for the person if the question differs from the one they were told under its number.
fn differs(said: &TypedAnswer<'_>, ask: &Ask) -> Option<String> {
    let asked = PresentedAsk::of(ask.event())?;
    let what = match said.question.check(&asked).err()? {
        AskMismatch::Question => answers::ANOTHER_QUESTION,
        AskMismatch::Words => answers::OTHER_WORDS,
    };
    Some(answers::hear_it_first(what))
}

async fn reply(
    number: u16,
    subscriber: &mut Subscriber,
    ask: &Ask,
    meaning: &AnswerMeaning,
) -> AnswerResult {
    let sent = async {
        match meaning {
            AnswerMeaning::Accept => ask.accept().await,
            AnswerMeaning::Reject => ask.reject().await,
            AnswerMeaning::Respond(response) => ask.answer(response.clone()).await,
            AnswerMeaning::Extend(_) | AnswerMeaning::Pause | AnswerMeaning::Resume => Ok(()),
        }
    };
    let settled = async {
        sent.await?;
        // If nobody reports the result in time, say that it is unknown.
        let settled = timeout(SETTLE_PATIENCE, ask.settled()).await.unwrap_or(AskState::Unknown);
        // Two people can give different answers at the same moment. The refusal for the later one arrives a little
        // later.
        if matches!(meaning, AnswerMeaning::Respond(_)) && settled != AskState::Unknown {
            tokio::time::sleep(REFUSAL_PATIENCE).await;
        }
        Ok(settled)
    };
    let HeardMeanwhile { value, refusal } = hearing(subscriber, ask, settled).await;
    let (Some(settled), is_refused) = (value, refusal.is_some()) else {
        let why = refusal.unwrap_or_default();
        return AnswerResult::NotDone(answers::does_not_count(number, &sentence(&why)));
    };
    match settled {
        Ok(AskState::Resolved { outcome, decided_by }) => {
            resolved(meaning, &outcome, &decided_by, is_refused)
        }
        Err(SayError::CannotReply(CannotReply::Resolved { outcome, decided_by })) => {
            AnswerResult::Over(answers::ended_without_it(&outcome, &decided_by))
        }
        Ok(AskState::Withdrawn(_)) | Err(SayError::CannotReply(CannotReply::Withdrawn(_))) => {
            AnswerResult::Over(answers::NO_LONGER_ASKED.to_owned())
        }
        Ok(AskState::Expired) | Err(SayError::CannotReply(CannotReply::Expired)) => {
            AnswerResult::Over(answers::TOO_LATE.to_owned())
        }
        Err(error @ SayError::CannotReply(_)) => {
            AnswerResult::NotDone(answers::nothing_answered(&error.to_string()))
        }
        Ok(_) | Err(_) => AnswerResult::Unknown(answers::NOT_KNOWN.to_owned()),
    }
}

/// The result of an answer that was sent.
fn resolved(
    meaning: &AnswerMeaning,
    outcome: &AskOutcome,
    decided_by: &DecidedBy,
    is_refused: bool,
) -> AnswerResult {
    let done = match (meaning, outcome) {
        (AnswerMeaning::Accept, AskOutcome::Accept) => answers::ALLOWED.to_owned(),
        (AnswerMeaning::Reject, AskOutcome::Reject) => answers::REFUSED.to_owned(),
        (AnswerMeaning::Respond(response), AskOutcome::Answered) => {
            let text = match response {
                Response::Text(text) => text.clone(),
                Response::YesNo(yes) => if *yes { answers::YES } else { answers::NO }.to_owned(),
                Response::Number(number) => number.to_string(),
            };
            answers::answered(&sentence(&text))
        }
        _ => return AnswerResult::Over(answers::ended_without_it(outcome, decided_by)),
    };
    if *decided_by == DecidedBy::Reply && !is_refused {
        AnswerResult::Settled(done)
    } else {
        AnswerResult::Over(answers::ended_without_it(outcome, decided_by))
    }
}

async fn change_time(
    subscriber: &mut Subscriber,
    ask: &Ask,
    meaning: &AnswerMeaning,
) -> AnswerResult {
    let asked = match meaning {
        AnswerMeaning::Extend(seconds) => ask.extend(*seconds).await,
        AnswerMeaning::Pause => ask.pause().await,
        _ => ask.resume().await,
    };
    if let Err(error) = asked {
        return AnswerResult::NotDone(error.to_string());
    }
    let until = Instant::now() + ASK_PATIENCE;
    while let Ok(Some(news)) = timeout_at(until, subscriber.next()).await {
        match news {
            News::AskTimeChanged(changed) if changed.reply_token() == ask.reply_token() => {
                return AnswerResult::Waits(answers::waits(
                    changed.remaining(),
                    changed.is_paused(),
                ));
            }
            News::Refused { .. } => {
                return AnswerResult::NotDone(answers::time_not_changed(ask.remaining()));
            }
            News::AskEnded(ended) if ended.reply_token() == ask.reply_token() => {
                return AnswerResult::Over(match ended.state() {
                    AskState::Resolved { outcome, decided_by } => {
                        answers::ended_without_it(&outcome, &decided_by)
                    }
                    _ => answers::OVER.to_owned(),
                });
            }
            _ => {}
        }
    }
    AnswerResult::Unknown(answers::TIME_NOT_KNOWN.to_owned())
}

/// What was received while waiting for something.
struct HeardMeanwhile<T> {
    /// What was waited for; `None` if the answer was refused before that, and nothing more is known.
    value: Option<T>,
    /// Why the hub refused the answer, if it did.
    refusal: Option<String>,
}

/// Waits for a future while the subscriber keeps receiving, which the future depends on. After a refusal of the answer
/// it waits only for the notice that the question was settled before, which may take another way.
async fn hearing<T>(
    subscriber: &mut Subscriber,
    ask: &Ask,
    waiting: impl Future<Output = T>,
) -> HeardMeanwhile<T> {
    let mut waiting = std::pin::pin!(waiting);
    let (mut refusal, mut until, mut is_ended) = (None, None, false);
    loop {
        let given_up = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            news = subscriber.next(), if !is_ended => match news {
                Some(News::AnswerNotCounted { ask: theirs, message, .. })
                    if theirs.reply_token() == ask.reply_token() =>
                {
                    refusal = Some(message);
                    until = Some(Instant::now() + REFUSAL_PATIENCE);
                }
                Some(News::Refused { error, message }) if error == "invalid_token" => {
                    refusal = Some(message);
                }
                Some(_) => {}
                None => is_ended = true,
            },
            value = &mut waiting => return HeardMeanwhile { value: Some(value), refusal },
            () = given_up => return HeardMeanwhile { value: None, refusal },
        }
    }
}

/// Whether the hub says that the question is no longer open. Only a hub can say so.
async fn is_gone(said: &TypedAnswer<'_>) -> bool {
    let (address, token) = (said.question.address.clone(), said.token.map(str::to_owned));
    if !can_look(&address) {
        return false;
    }
    let looked = tokio::task::spawn_blocking(move || look::look(&address, token.as_deref())).await;
    let Ok(Ok(looked)) = looked else { return false };
    let is_it = |token: &ReplyToken| token.as_str() == said.question.reply_token;
    let mut asked = looked.waiting.iter().filter_map(|it| it.asked.as_ref());
    // A principal that may not answer gets no reply tokens, so the list proves nothing.
    let may_tell = looked.more == 0 && looked.waiting.iter().all(|it| it.asked.is_some());
    may_tell && !asked.any(|asked| is_it(&asked.reply_token))
}

/// The result for a question that ended before the answer could be sent.
async fn over(said: &TypedAnswer<'_>) -> AnswerResult {
    let question = said.question.clone();
    let token = said.token.map(str::to_owned);
    let outcome = tokio::task::spawn_blocking(move || {
        look::outcome(&question.address, token.as_deref(), &question.reply_token)
    });
    let what = answers::over_unanswered(said.number);
    AnswerResult::Over(match outcome.await.ok().flatten() {
        Some((outcome, decided_by)) => {
            format!("{what} {}", answers::ended_without_it(&outcome, &decided_by))
        }
        None => what,
    })
}

#[cfg(test)]
mod tests;
