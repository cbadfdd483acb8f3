//! What comes from the hubs, and what it means for the person.

use std::process::ExitCode;

use aaep::{Event, printable};
use aaep_announce::{HubNumber, Input};
use aaep_subscriber::{Ended, News, Voice};
use tokio::time::timeout;

use super::GOODBYE;
use super::reaching::FromHub;
use super::room::Room;
use crate::console::{self, COULD_NOT, Failure};
use crate::english;
use crate::hubs::Hub;

/// A hub, and how it stands with it.
struct Line {
    hub: Hub,
    voice: Option<Voice>,
    /// Whether the person was told that it could not be reached, or that it is gone.
    is_missed: bool,
    /// Whether the person was told that the line broke.
    is_broken: bool,
    is_over: bool,
}

/// All hubs that are listened to.
pub(super) struct Hubs {
    lines: Vec<Line>,
    exit_code: u8,
}

impl Hubs {
    pub(super) fn new(hubs: Vec<Hub>) -> Self {
        let line =
            |hub| Line { hub, voice: None, is_missed: false, is_broken: false, is_over: false };
        Hubs { lines: hubs.into_iter().map(line).collect(), exit_code: 0 }
    }

    pub(super) fn are_several(&self) -> bool {
        self.lines.len() > 1
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.lines.iter().map(|it| it.hub.name.clone()).collect()
    }

    pub(super) fn address(&self, hub: HubNumber) -> &str {
        self.lines.get(hub).map_or("", |it| &it.hub.address)
    }

    /// Says something to a hub, as long as there is a line to it.
    pub(super) fn voice(&self, hub: HubNumber) -> Option<Voice> {
        self.lines.get(hub)?.voice.clone()
    }

    /// A sentence that says which hub it is about, where there are several.
    pub(super) fn about(&self, hub: HubNumber, sentence: &str) -> String {
        let line = self.lines.get(hub).filter(|_| self.are_several());
        line.map_or_else(|| sentence.to_owned(), |it| format!("{}: {sentence}", it.hub.name))
    }

    /// Says goodbye to all of them.
    pub(super) async fn close(&self) {
        let closing: Vec<_> = self
            .lines
            .iter()
            .filter_map(|it| it.voice.clone())
            .map(|voice| tokio::spawn(async move { voice.close(None).await }))
            .collect();
        let all = async {
            for closing in closing {
                let _ = closing.await;
            }
        };
        // A goodbye that cannot be said in time is one without a word.
        let _ = timeout(GOODBYE, all).await;
    }
}

impl Room {
    /// Something came from a hub. Says with which code to end, if nothing more comes from any.
    pub(super) fn hub_says(&mut self, hub: HubNumber, from: FromHub) -> Option<ExitCode> {
        let line = self.hubs.lines.get_mut(hub)?;
        match from {
            FromHub::Reached(voice) => {
                line.voice = Some(voice);
                if std::mem::replace(&mut line.is_missed, false) {
                    self.tell_from(hub, &Input::HubNotice(english::hubs::HUB_IS_THERE));
                }
            }
            FromHub::NotReached(failure) => {
                // That one is gone was told already.
                if !std::mem::replace(&mut line.is_missed, true) {
                    let what = english::hubs::not_reached(&in_short(&failure));
                    self.tell_from(hub, &Input::HubNotice(&what));
                }
            }
            FromHub::News(news) => match *news {
                News::Ended(why) => return self.ended(hub, &why),
                news => self.hear(hub, news),
            },
        }
        None
    }

    /// The person is told which hubs are neither there nor known to be missing.
    pub(super) fn tell_pending(&mut self) {
        for hub in 0..self.hubs.lines.len() {
            let Some(line) = self.hubs.lines.get_mut(hub) else { return };
            if line.voice.is_none() && !std::mem::replace(&mut line.is_missed, true) {
                self.tell_from(hub, &Input::HubNotice(english::hubs::NOT_ANSWERED_YET));
            }
        }
    }

    /// A subscription is over. The others go on.
    fn ended(&mut self, hub: HubNumber, why: &Ended) -> Option<ExitCode> {
        let is_only = !self.hubs.are_several();
        let line = self.hubs.lines.get_mut(hub)?;
        // A hub that closes in order may be there again soon.
        let comes_back = matches!(why, Ended::ClosedByProducer(_)) && !is_only;
        (line.voice, line.is_broken, line.is_over) = (None, false, !comes_back);
        line.is_missed = comes_back;
        let mut what = why.to_string();
        if comes_back {
            what = english::hubs::over_and_tried_again(&what);
        }
        self.tell_from(hub, &Input::HubNotice(&what));
        if !is_only {
            self.give_up(hub);
        }
        if !matches!(why, Ended::Closed | Ended::ClosedByProducer(_)) {
            self.hubs.exit_code = COULD_NOT;
            let what = self.hubs.about(hub, &what);
            console::complain(&Failure::of_sentences(&what, "Listen again later."));
        }
        let are_all_over = self.hubs.lines.iter().all(|it| it.is_over);
        are_all_over.then(|| ExitCode::from(self.hubs.exit_code))
    }

    fn hear(&mut self, hub: HubNumber, news: News) {
        match news {
            News::Event(event) => {
                self.was_heard(hub, &event);
                self.tell_from(hub, &Input::Event(&event));
            }
            News::Ask(ask) => {
                self.was_heard(hub, ask.event());
                self.asked(hub, ask);
            }
            News::AskEnded(ask) => self.over(hub, &ask),
            News::AskTimeChanged(ask) => {
                if let Some(number) = self.open.number_of(hub, &ask) {
                    let wanted = self.timed.take_if(|(timed, _)| *timed == number);
                    let wanted = wanted.and_then(|(_, wanted)| wanted);
                    if let Some(waiting) = self.open.get_mut(number) {
                        waiting.is_time_known = true;
                    }
                    let (remaining, is_paused) = (ask.remaining(), ask.is_paused());
                    self.tell_all(&Input::TimeChanged { number, remaining, is_paused, wanted });
                }
            }
            News::Gap { session_id, missed, .. } => {
                self.tell_from(hub, &Input::Gap { session_id: &session_id, missed });
            }
            News::Reconnecting { .. } => self.line(hub, true),
            News::Reconnected => self.line(hub, false),
            News::Instructed { .. } => self.instructed(hub),
            News::LeftOut { count } => self.tell_from(hub, &Input::LeftOut(count)),
            News::Refused { error, message } => self.refused(hub, &error, &message),
            News::WithoutHandshake => {
                self.tell_from(hub, &Input::HubNotice(english::hubs::WITHOUT_HANDSHAKE));
            }
            // New terms are as good as the old ones, and broken rules are nothing for ears.
            _ => {}
        }
    }

    fn was_heard(&mut self, hub: HubNumber, event: &Event) {
        if let Some(leaving) = self.leaving.get_mut(hub) {
            leaving.heard(event);
        }
    }

    /// The line to a hub broke or is back. That it is tried again and again is told once.
    fn line(&mut self, hub: HubNumber, is_broken: bool) {
        let Some(line) = self.hubs.lines.get_mut(hub) else { return };
        if std::mem::replace(&mut line.is_broken, is_broken) == is_broken && is_broken {
            return;
        }
        if is_broken {
            self.forget_instructions(hub);
        }
        let input = if is_broken { Input::LineBroken } else { Input::LineBack };
        self.tell_from(hub, &input);
    }

    /// The hub did not take something. What becomes of answers is told by their questions.
    fn refused(&mut self, hub: HubNumber, error: &str, message: &str) {
        let timed = self.timed.map(|(number, _)| number);
        let timed = timed.filter(|it| self.open.get(*it).is_some_and(|it| it.hub == hub));
        if error == "not_accepted" && self.not_accepted(hub) {
            return;
        }
        if error != "invalid_token" {
            self.tell_from(hub, &Input::HubNotice(&printable(message)));
        } else if let Some(number) = timed {
            self.timed = None;
            let what = english::hubs::time_not_changed(number);
            self.tell_all(&Input::Notice(&what));
        }
        // A hub that counts the time from when it asked does not want to know when that was heard.
    }
}

/// The first sentence of why a hub could not be reached, without numbers of the system.
fn in_short(failure: &Failure) -> String {
    let first = failure.what().split(". ").next().unwrap_or_default();
    first.split(" (os error").next().unwrap_or_default().to_owned()
}
