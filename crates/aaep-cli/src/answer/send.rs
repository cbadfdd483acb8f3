//! Sending an answer through the kit: to exactly the question that the person was told, and what came of it.

use std::future::Future;
use std::time::Duration;

use aaep::extension::{DecidedBy, Outcome};
use aaep::reply::Response;
use aaep::{LanguageTag, ReplyToken};
use aaep_subscriber::{Ask, AskState, CannotReply, News, SayError, Subscriber, Wishes, connect};
use tokio::time::{Instant, timeout, timeout_at};

use super::meaning::{self, Meaning, Unclear};
use crate::attention::asked::Asked;
use crate::attention::file::NumbersFile;
use crate::attention::look;
use crate::attention::numbers::{Differs, Question};
use crate::attention::words::{sentence, what_can_be_said};
use crate::console::Failure;
use crate::english::answers;
use crate::hubs::reach::can_look;

/// How long it may take to reach the producer.
const CONNECT_PATIENCE: Duration = Duration::from_secs(20);

/// How long a producer has to tell the question again to someone who comes for it.
const ASK_PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked meanwhile whether the question is still there.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long a producer has to say what came of an answer.
const SETTLE_PATIENCE: Duration = Duration::from_secs(20);

/// How long a refusal may come after the word that the question is settled.
const REFUSAL_PATIENCE: Duration = Duration::from_millis(500);

/// How long saying goodbye may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// What the person said, and to which question.
#[derive(Debug)]
pub(super) struct Said<'a> {
    pub(super) number: u16,
    pub(super) question: &'a Question,
    /// Where it stands which questions the person was told.
    pub(super) file: &'a NumbersFile,
    pub(super) words: &'a str,
    pub(super) as_they_stand: bool,
    /// When the person answered at the earliest.
    pub(super) begun_unix_ms: i64,
    pub(super) token: Option<&'a str>,
    pub(super) languages: Option<Vec<LanguageTag>>,
}

/// What came of it, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Came {
    /// What the person said settled the question.
    Settled(String),
    /// What the person wanted of its time. The question waits.
    Waits(String),
    /// Something else. Nothing of what the person said counts.
    NotDone(String),
    /// The question is over, and not because of what the person said.
    Over(String),
    /// Nobody knows.
    Unknown(String),
}

/// Sends the answer, and says what came of it.
pub(super) async fn send(said: &Said<'_>) -> Result<Came, Failure> {
    if is_gone(said).await {
        return Ok(over(said).await);
    }
    let mut wishes = Wishes::new("aaep-answer").name("aaep answer").time_from_presented();
    wishes.bearer = said.token.map(str::to_owned);
    wishes.capabilities.languages.clone_from(&said.languages);
    let connected = timeout(CONNECT_PATIENCE, connect(&said.question.address, wishes)).await;
    let next = "See whether the hub runs, and run aaep attention.";
    let mut subscriber = match connected {
        Ok(connected) => {
            connected.map_err(|error| Failure::of_sentences(&error.to_string(), next))?
        }
        Err(_) => return Err(Failure::new("the hub of this question does not answer", next)),
    };
    let came = say_to(said, &mut subscriber).await;
    // A goodbye that cannot be said in time is one without a word. Others who listen go on listening.
    let _ = timeout(GOODBYE, subscriber.close(None)).await;
    came
}

async fn say_to(said: &Said<'_>, subscriber: &mut Subscriber) -> Result<Came, Failure> {
    let Some(ask) = wait_for_it(said, subscriber).await? else { return Ok(over(said).await) };
    if !ask.can_reply() {
        let next = "Use a token with the scope reply.";
        return Err(Failure::new("you may hear this question but not answer it", next));
    }
    if let Some(differs) = differs(said, &ask) {
        return Ok(Came::NotDone(differs));
    }
    let payload = &ask.event().payload;
    let meaning = match meaning::understand(payload, said.words, said.as_they_stand) {
        Ok(meaning) => meaning,
        Err(Unclear(why)) => {
            let can = what_can_be_said(said.number, payload);
            return Ok(Came::NotDone(format!("{} {can}", answers::nothing_answered(&why))));
        }
    };
    if meaning.lets_happen() && !was_presented(said) {
        return Ok(Came::NotDone(answers::not_heard_whole(said.number)));
    }
    Ok(match meaning {
        Meaning::Extend(_) | Meaning::Pause | Meaning::Resume => {
            change_time(subscriber, &ask, &meaning).await
        }
        answer => reply(subscriber, &ask, &answer).await,
    })
}

/// Whether the person was told the question to its end before they answered. A subscriber may have written that only
/// just now.
fn was_presented(said: &Said<'_>) -> bool {
    let newest = said.file.look().ok();
    let newest = newest.as_ref().and_then(|it| it.question(said.number));
    newest.is_some_and(|it| {
        it.reply_token == said.question.reply_token && it.was_presented(said.begun_unix_ms)
    })
}

/// Waits until the producer tells the question, which is the first thing that a newcomer hears.
async fn wait_for_it(said: &Said<'_>, subscriber: &mut Subscriber) -> Result<Option<Ask>, Failure> {
    let until = Instant::now() + ASK_PATIENCE;
    while Instant::now() < until {
        let look_at = (Instant::now() + LOOK_EVERY).min(until);
        while let Ok(news) = timeout_at(look_at, subscriber.next()).await {
            match news {
                Some(News::Ask(ask)) if ask.reply_token().as_str() == said.question.reply_token => {
                    return Ok(Some(ask));
                }
                Some(News::Ended(why)) => {
                    return Err(Failure::of_sentences(&why.to_string(), "Run: aaep attention"));
                }
                Some(_) => {}
                None => return Err(Failure::new("the hub is gone", "Run: aaep attention")),
            }
        }
        if is_gone(said).await {
            break;
        }
    }
    Ok(None)
}

/// What the person is told if the question is not what they were told under its number.
fn differs(said: &Said<'_>, ask: &Ask) -> Option<String> {
    let asked = Asked::of(ask.event())?;
    let what = match said.question.check(&asked).err()? {
        Differs::Question => answers::ANOTHER_QUESTION,
        Differs::Words => answers::OTHER_WORDS,
    };
    Some(answers::hear_it_first(what))
}

async fn reply(subscriber: &mut Subscriber, ask: &Ask, meaning: &Meaning) -> Came {
    let sent = async {
        match meaning {
            Meaning::Accept => ask.accept().await,
            Meaning::Reject => ask.reject().await,
            Meaning::Respond(response) => ask.answer(response.clone()).await,
            Meaning::Extend(_) | Meaning::Pause | Meaning::Resume => Ok(()),
        }
    };
    let settled = async {
        sent.await?;
        // Where nobody says what came of it, that is what is said.
        let settled = timeout(SETTLE_PATIENCE, ask.settled()).await.unwrap_or(AskState::Unknown);
        // Two people can answer in other words at the same moment; who was too late hears so a little later.
        if matches!(meaning, Meaning::Respond(_)) && settled != AskState::Unknown {
            tokio::time::sleep(REFUSAL_PATIENCE).await;
        }
        Ok(settled)
    };
    let (settled, is_refused) = hearing(subscriber, settled).await;
    match settled {
        Ok(AskState::Resolved { outcome, decided_by }) => {
            resolved(meaning, &outcome, &decided_by, is_refused)
        }
        Err(SayError::CannotReply(CannotReply::Resolved { outcome, decided_by })) => {
            Came::Over(answers::ended_without_it(&outcome, &decided_by))
        }
        Ok(AskState::Withdrawn(_)) | Err(SayError::CannotReply(CannotReply::Withdrawn(_))) => {
            Came::Over(answers::NO_LONGER_ASKED.to_owned())
        }
        Ok(AskState::Expired) | Err(SayError::CannotReply(CannotReply::Expired)) => {
            Came::Over(answers::TOO_LATE.to_owned())
        }
        Err(error @ SayError::CannotReply(_)) => {
            Came::NotDone(answers::nothing_answered(&error.to_string()))
        }
        Ok(_) | Err(_) => Came::Unknown(answers::NOT_KNOWN.to_owned()),
    }
}

/// What came of an answer that was sent.
fn resolved(
    meaning: &Meaning,
    outcome: &Outcome,
    decided_by: &DecidedBy,
    is_refused: bool,
) -> Came {
    let done = match (meaning, outcome) {
        (Meaning::Accept, Outcome::Accept) => answers::ALLOWED.to_owned(),
        (Meaning::Reject, Outcome::Reject) => answers::REFUSED.to_owned(),
        (Meaning::Respond(response), Outcome::Answered) => {
            let text = match response {
                Response::Text(text) => text.clone(),
                Response::YesNo(yes) => if *yes { answers::YES } else { answers::NO }.to_owned(),
                Response::Number(number) => number.to_string(),
            };
            answers::answered(&sentence(&text))
        }
        _ => return Came::Over(answers::ended_without_it(outcome, decided_by)),
    };
    if *decided_by == DecidedBy::Reply && !is_refused {
        Came::Settled(done)
    } else {
        Came::Over(answers::ended_without_it(outcome, decided_by))
    }
}

async fn change_time(subscriber: &mut Subscriber, ask: &Ask, meaning: &Meaning) -> Came {
    let asked = match meaning {
        Meaning::Extend(seconds) => ask.extend(*seconds).await,
        Meaning::Pause => ask.pause().await,
        _ => ask.resume().await,
    };
    if let Err(error) = asked {
        return Came::NotDone(error.to_string());
    }
    let until = Instant::now() + ASK_PATIENCE;
    while let Ok(Some(news)) = timeout_at(until, subscriber.next()).await {
        match news {
            News::AskTimeChanged(changed) if changed.reply_token() == ask.reply_token() => {
                return Came::Waits(answers::waits(changed.remaining(), changed.is_paused()));
            }
            News::Refused { .. } => {
                return Came::NotDone(answers::time_not_changed(ask.remaining()));
            }
            News::AskEnded(ended) if ended.reply_token() == ask.reply_token() => {
                return Came::Over(match ended.state() {
                    AskState::Resolved { outcome, decided_by } => {
                        answers::ended_without_it(&outcome, &decided_by)
                    }
                    _ => answers::OVER.to_owned(),
                });
            }
            _ => {}
        }
    }
    Came::Unknown(answers::TIME_NOT_KNOWN.to_owned())
}

/// Waits for something while the subscriber goes on hearing, which it has to for anything to happen. Also says
/// whether the producer did not take an answer meanwhile.
async fn hearing<T>(subscriber: &mut Subscriber, waiting: impl Future<Output = T>) -> (T, bool) {
    let mut waiting = std::pin::pin!(waiting);
    let (mut is_refused, mut is_ended) = (false, false);
    loop {
        tokio::select! {
            news = subscriber.next(), if !is_ended => match news {
                Some(News::Refused { error, .. }) => is_refused |= error == "invalid_token",
                Some(_) => {}
                None => is_ended = true,
            },
            value = &mut waiting => return (value, is_refused),
        }
    }
}

/// Whether the hub says that the question does not wait any more. Nobody else can say so.
async fn is_gone(said: &Said<'_>) -> bool {
    let (address, token) = (said.question.address.clone(), said.token.map(str::to_owned));
    if !can_look(&address) {
        return false;
    }
    let looked = tokio::task::spawn_blocking(move || look::look(&address, token.as_deref())).await;
    let Ok(Ok(looked)) = looked else { return false };
    let is_it = |token: &ReplyToken| token.as_str() == said.question.reply_token;
    let mut asked = looked.waiting.iter().filter_map(|it| it.asked.as_ref());
    // Someone who may not answer is told no tokens, and cannot tell.
    let may_tell = looked.more == 0 && looked.waiting.iter().all(|it| it.asked.is_some());
    may_tell && !asked.any(|asked| is_it(&asked.reply_token))
}

/// The question is over before the answer could be sent.
async fn over(said: &Said<'_>) -> Came {
    let question = said.question.clone();
    let token = said.token.map(str::to_owned);
    let outcome = tokio::task::spawn_blocking(move || {
        look::outcome(&question.address, token.as_deref(), &question.reply_token)
    });
    let what = answers::over_unanswered(said.number);
    Came::Over(match outcome.await.ok().flatten() {
        Some((outcome, decided_by)) => {
            format!("{what} {}", answers::ended_without_it(&outcome, &decided_by))
        }
        None => what,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_person_said_and_the_producer_took_is_told_as_theirs() {
        let own = |meaning: &Meaning, outcome: Outcome| {
            resolved(meaning, &outcome, &DecidedBy::Reply, false)
        };
        assert_eq!(own(&Meaning::Accept, Outcome::Accept), Came::Settled("You allowed it.".into()));
        assert_eq!(own(&Meaning::Reject, Outcome::Reject), Came::Settled("You refused it.".into()));
        let blue = Meaning::Respond(Response::Text("blue\u{1b}".to_owned()));
        let Came::Settled(said) = own(&blue, Outcome::Answered) else { panic!("it is theirs") };
        assert!(said.starts_with("You answered: blue") && !said.contains('\u{1b}'), "{said}");
        for (meaning, outcome, decided_by, is_refused) in [
            (&Meaning::Accept, Outcome::Reject, DecidedBy::Reply, false),
            (&Meaning::Reject, Outcome::Accept, DecidedBy::Reply, false),
            (&Meaning::Accept, Outcome::Accept, DecidedBy::Reply, true),
            (&Meaning::Accept, Outcome::Accept, DecidedBy::Timeout, false),
            (&Meaning::Reject, Outcome::Reject, DecidedBy::NoListener, false),
            (&Meaning::Accept, Outcome::Withdrawn, DecidedBy::Withdrawn, false),
            (&blue, Outcome::Answered, DecidedBy::Reply, true),
            (&blue, Outcome::Unanswered, DecidedBy::Timeout, false),
        ] {
            let came = resolved(meaning, &outcome, &decided_by, is_refused);
            assert!(matches!(came, Came::Over(_)), "{meaning:?} {outcome}: {came:?}");
        }
    }

    #[test]
    fn an_answer_from_elsewhere_is_said_as_such() {
        let said = |outcome, decided_by| answers::ended_without_it(&outcome, &decided_by);
        assert_eq!(
            said(Outcome::Reject, DecidedBy::Reply),
            "It was already answered elsewhere: rejected."
        );
        assert_eq!(
            said(Outcome::Reject, DecidedBy::Timeout),
            "The time to answer is over. It ended: rejected."
        );
        assert_eq!(
            said(Outcome::Withdrawn, DecidedBy::Withdrawn),
            "The agent no longer asks this."
        );
    }
}
