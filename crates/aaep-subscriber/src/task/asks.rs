//! The asks that the program holds, and the state of each.

use std::collections::BTreeMap;
use std::time::Duration;

use aaep::ReplyToken;
use aaep_engine::subscriber::{CannotReply, UnsettledAsk, WhyWithdrawn};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::ask::{Ask, AskStanding, AskState};
use crate::command::{DoneSender, KitAnswer, TaskCommand};
use crate::error::SayError;
use crate::news::News;

/// How many answered asks are tracked until their outcome is known. Beyond that, the oldest is dropped with the
/// state [`AskState::Unknown`].
const MAX_FOLLOWED: usize = 256;

/// The asks that the program holds.
pub(super) struct KitAsks {
    tracked: BTreeMap<ReplyToken, KitAsk>,
    commands: mpsc::WeakSender<TaskCommand>,
    began: Instant,
    opened: u64,
}

struct KitAsk {
    ask: Ask,
    standing: watch::Sender<AskStanding>,
    /// An answer that waits for the link.
    waiting: Option<(KitAnswer, DoneSender)>,
    /// The ask as it was before the answer that was sent.
    before_answer: Option<UnsettledAsk>,
    opened: u64,
}

impl KitAsks {
    pub(super) fn new(commands: mpsc::WeakSender<TaskCommand>, began: Instant) -> Self {
        KitAsks { tracked: BTreeMap::new(), commands, began, opened: 0 }
    }

    /// Adds an open ask. Returns nothing if the program is gone.
    pub(super) fn open(&mut self, open: &UnsettledAsk) -> Option<Ask> {
        let commands = self.commands.upgrade()?;
        let standing = AskStanding {
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
        let tracked = KitAsk {
            ask: ask.clone(),
            standing: sender,
            waiting: None,
            before_answer: None,
            opened: self.opened,
        };
        self.tracked.insert(open.reply_token.clone(), tracked);
        Some(ask)
    }

    /// Updates the time to answer.
    pub(super) fn change_time(&mut self, open: &UnsettledAsk) -> Option<Ask> {
        let deadline = self.moment(open.deadline_us);
        let tracked = self.tracked.get(&open.reply_token)?;
        tracked.standing.send_modify(|it| {
            it.deadline = deadline;
            it.is_paused = open.is_paused;
        });
        Some(tracked.ask.clone())
    }

    /// Ends an ask. An answer that still waits for the link is not sent.
    pub(super) fn end(&mut self, token: &ReplyToken, state: AskState) -> Option<News> {
        let tracked = self.tracked.remove(token)?;
        if let Some((_, done)) = tracked.waiting {
            let _ = done.send(Err(why_not(&state)));
        }
        tracked.standing.send_modify(|it| it.state = state);
        Some(News::AskEnded(tracked.ask))
    }

    /// Keeps an answer until the link is back. Refuses a second answer to the same ask.
    pub(super) fn wait(
        &mut self,
        token: &ReplyToken,
        answer: KitAnswer,
        done: DoneSender,
    ) -> Result<(), (DoneSender, CannotReply)> {
        let Some(tracked) = self.tracked.get_mut(token) else {
            return Err((done, CannotReply::UnknownAsk));
        };
        if tracked.waiting.as_ref().is_some_and(|(_, done)| !done.is_closed())
            || !tracked.standing.borrow().state.is_open()
        {
            return Err((done, CannotReply::AlreadyAnswered));
        }
        tracked.waiting = Some((answer, done));
        Ok(())
    }

    /// Takes the next answer that waits for the link. An answer whose future was dropped was taken back and is
    /// skipped.
    pub(super) fn next_waiting(&mut self) -> Option<(ReplyToken, KitAnswer, DoneSender)> {
        self.tracked.iter_mut().find_map(|(token, tracked)| {
            let (answer, done) = tracked.waiting.take()?;
            (!done.is_closed()).then(|| (token.clone(), answer, done))
        })
    }

    /// Records that the person's answer is on its way. `before` is the ask before it was answered.
    pub(super) fn answered(&mut self, token: &ReplyToken, before: Option<UnsettledAsk>) {
        self.set(token, AskState::Answered);
        if let Some(tracked) = self.tracked.get_mut(token) {
            tracked.before_answer = before;
        }
        let followed = self.tracked.values().filter(|it| !it.standing.borrow().state.is_open());
        if followed.clone().count() > MAX_FOLLOWED
            && let Some(oldest) = followed.min_by_key(|it| it.opened)
        {
            let oldest = oldest.ask.reply_token.clone();
            self.set(&oldest, AskState::Unknown);
            self.tracked.remove(&oldest);
        }
    }

    /// Opens an ask again whose answer does not count, if `reopen` agrees.
    pub(super) fn not_counted(
        &mut self,
        token: &ReplyToken,
        reopen: impl FnOnce(UnsettledAsk) -> bool,
    ) -> Option<Ask> {
        let tracked = self.tracked.get_mut(token)?;
        let before = tracked.before_answer.take()?;
        if !reopen(before) {
            return None;
        }
        tracked.standing.send_modify(|it| it.state = AskState::Open);
        Some(tracked.ask.clone())
    }

    /// Marks the answer to an ask as uncertain.
    pub(super) fn doubt_answer(&mut self, token: &ReplyToken) -> Vec<News> {
        self.doubt(|ask| ask.reply_token == *token)
    }

    /// Marks the answers that were sent as uncertain: they may not have arrived.
    pub(super) fn doubt_answers(&mut self) -> Vec<News> {
        self.doubt(|_| true)
    }

    fn doubt(&mut self, is_meant: impl Fn(&Ask) -> bool) -> Vec<News> {
        let is_answered =
            |it: &&KitAsk| it.standing.borrow().state == AskState::Answered && is_meant(&it.ask);
        let doubtful: Vec<_> = self.tracked.values().filter(is_answered).collect();
        for tracked in &doubtful {
            tracked.standing.send_modify(|it| it.state = AskState::Unknown);
        }
        doubtful.into_iter().map(|tracked| News::AskEnded(tracked.ask.clone())).collect()
    }

    /// Records that the link broke or is back.
    pub(super) fn reach(&mut self, is_reached: bool) {
        let (from, to) = if is_reached {
            (AskState::Unreached, AskState::Open)
        } else {
            (AskState::Open, AskState::Unreached)
        };
        for tracked in self.tracked.values() {
            tracked.standing.send_if_modified(|it| {
                let is_it = it.state == from;
                if is_it {
                    it.state = to.clone();
                }
                is_it
            });
        }
    }

    /// Ends all asks, because nothing more will be received about them.
    pub(super) fn end_all(&mut self) -> Vec<News> {
        let mut news = self.doubt_answers();
        let open = self.tracked.iter().filter(|(_, it)| it.standing.borrow().state.is_open());
        let open: Vec<_> = open.map(|(token, _)| token.clone()).collect();
        let why = WhyWithdrawn::SubscriptionEnded;
        news.extend(open.iter().filter_map(|it| self.end(it, AskState::Withdrawn(why.clone()))));
        self.tracked.clear();
        news
    }

    fn set(&mut self, token: &ReplyToken, state: AskState) {
        if let Some(tracked) = self.tracked.get(token) {
            tracked.standing.send_modify(|it| it.state = state);
        }
    }

    fn moment(&self, us: u64) -> Instant {
        self.began + Duration::from_micros(us)
    }
}

/// The error for an answer that came too late.
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
