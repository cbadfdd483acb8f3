//! The questions that the program holds, and how each stands.

use std::collections::BTreeMap;
use std::time::Duration;

use aaep::ReplyToken;
use aaep_engine::subscriber::{CannotReply, OpenAsk, WhyWithdrawn};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::ask::{Ask, AskState, Standing};
use crate::command::{Answer, Command, Done};
use crate::error::SayError;
use crate::news::News;

/// How many answered questions are followed until it is known what became of them. Then the oldest is given
/// up, and its state says that nobody knows.
const MAX_FOLLOWED: usize = 256;

/// The questions that the program holds.
pub(super) struct Asks {
    known: BTreeMap<ReplyToken, Known>,
    commands: mpsc::WeakSender<Command>,
    began: Instant,
    opened: u64,
}

struct Known {
    ask: Ask,
    standing: watch::Sender<Standing>,
    /// An answer that waits for the line.
    waiting: Option<(Answer, Done)>,
    opened: u64,
}

impl Asks {
    pub(super) fn new(commands: mpsc::WeakSender<Command>, began: Instant) -> Self {
        Asks { known: BTreeMap::new(), commands, began, opened: 0 }
    }

    /// A question waits for the person; nothing if the program is gone.
    pub(super) fn open(&mut self, open: &OpenAsk) -> Option<Ask> {
        let commands = self.commands.upgrade()?;
        let standing = Standing {
            state: AskState::Open,
            deadline: self.moment(open.deadline_us),
            is_paused: open.is_paused,
        };
        let (sender, receiver) = watch::channel(standing);
        let ask = Ask {
            reply_token: open.reply_token.clone(),
            event: open.event.clone(),
            can_reply: open.can_reply,
            standing: receiver,
            commands,
        };
        self.opened += 1;
        let known =
            Known { ask: ask.clone(), standing: sender, waiting: None, opened: self.opened };
        self.known.insert(open.reply_token.clone(), known);
        Some(ask)
    }

    /// The time to answer has changed.
    pub(super) fn change_time(&mut self, open: &OpenAsk) -> Option<Ask> {
        let deadline = self.moment(open.deadline_us);
        let known = self.known.get(&open.reply_token)?;
        known.standing.send_modify(|it| {
            it.deadline = deadline;
            it.is_paused = open.is_paused;
        });
        Some(known.ask.clone())
    }

    /// A question is over. An answer that still waits for the line is not sent.
    pub(super) fn end(&mut self, token: &ReplyToken, state: AskState) -> Option<News> {
        let known = self.known.remove(token)?;
        if let Some((_, done)) = known.waiting {
            let _ = done.send(Err(why_not(&state)));
        }
        known.standing.send_modify(|it| it.state = state);
        Some(News::AskEnded(known.ask))
    }

    /// An answer waits for the line, or comes back if there is one already.
    pub(super) fn wait(
        &mut self,
        token: &ReplyToken,
        answer: Answer,
        done: Done,
    ) -> Result<(), (Done, CannotReply)> {
        let Some(known) = self.known.get_mut(token) else {
            return Err((done, CannotReply::UnknownAsk));
        };
        if known.waiting.as_ref().is_some_and(|(_, done)| !done.is_closed())
            || !known.standing.borrow().state.is_open()
        {
            return Err((done, CannotReply::AlreadyAnswered));
        }
        known.waiting = Some((answer, done));
        Ok(())
    }

    /// An answer that waits for the line. One that nobody waits for any more was taken back.
    pub(super) fn next_waiting(&mut self) -> Option<(ReplyToken, Answer, Done)> {
        self.known.iter_mut().find_map(|(token, known)| {
            let (answer, done) = known.waiting.take()?;
            (!done.is_closed()).then(|| (token.clone(), answer, done))
        })
    }

    /// The person's answer is on its way.
    pub(super) fn answered(&mut self, token: &ReplyToken) {
        self.set(token, AskState::Answered);
        let followed = self.known.values().filter(|it| !it.standing.borrow().state.is_open());
        if followed.clone().count() > MAX_FOLLOWED
            && let Some(oldest) = followed.min_by_key(|it| it.opened)
        {
            let oldest = oldest.ask.reply_token.clone();
            self.set(&oldest, AskState::Unknown);
            self.known.remove(&oldest);
        }
    }

    /// It is not sure whether the answers that were sent have arrived.
    pub(super) fn doubt_answers(&mut self) -> Vec<News> {
        let is_answered = |it: &&Known| it.standing.borrow().state == AskState::Answered;
        let doubtful: Vec<_> = self.known.values().filter(is_answered).collect();
        for known in &doubtful {
            known.standing.send_modify(|it| it.state = AskState::Unknown);
        }
        doubtful.into_iter().map(|known| News::AskEnded(known.ask.clone())).collect()
    }

    /// The line broke, or is back.
    pub(super) fn reach(&mut self, is_reached: bool) {
        let (from, to) = if is_reached {
            (AskState::Unreached, AskState::Open)
        } else {
            (AskState::Open, AskState::Unreached)
        };
        for known in self.known.values() {
            known.standing.send_if_modified(|it| {
                let is_it = it.state == from;
                if is_it {
                    it.state = to.clone();
                }
                is_it
            });
        }
    }

    /// Nothing more is heard of any question.
    pub(super) fn end_all(&mut self) -> Vec<News> {
        let mut news = self.doubt_answers();
        let open = self.known.iter().filter(|(_, it)| it.standing.borrow().state.is_open());
        let open: Vec<_> = open.map(|(token, _)| token.clone()).collect();
        let why = WhyWithdrawn::SubscriptionEnded;
        news.extend(open.iter().filter_map(|it| self.end(it, AskState::Withdrawn(why.clone()))));
        self.known.clear();
        news
    }

    fn set(&mut self, token: &ReplyToken, state: AskState) {
        if let Some(known) = self.known.get(token) {
            known.standing.send_modify(|it| it.state = state);
        }
    }

    fn moment(&self, us: u64) -> Instant {
        self.began + Duration::from_micros(us)
    }
}

/// What someone is told whose answer came too late.
fn why_not(state: &AskState) -> SayError {
    SayError::CannotReply(match state.clone() {
        AskState::Resolved { outcome, decided_by } => CannotReply::Resolved { outcome, decided_by },
        AskState::Withdrawn(why) => CannotReply::Withdrawn(why),
        AskState::Expired => CannotReply::Expired,
        AskState::Forgotten => CannotReply::Forgotten,
        AskState::Answered | AskState::Unknown => CannotReply::AlreadyAnswered,
        AskState::Open | AskState::Unreached => CannotReply::UnknownAsk,
    })
}
