//! Handles the news from the hubs.

use std::process::ExitCode;

use aaep::{Event, printable};
use aaep_announce::{AnnouncerInput, HubNumber};
use aaep_subscriber::{Ended, News, Voice};
use tokio::time::timeout;

use super::GOODBYE;
use super::reaching::HubSignal;
use super::room::ListeningRoom;
use crate::console::{self, COULD_NOT, CommandFailure};
use crate::english;
use crate::hubs::HubTarget;

/// A hub and the state of the link to it.
struct HubLink {
    hub: HubTarget,
    voice: Option<Voice>,
    /// Whether the person was told that the hub could not be reached or is gone.
    is_missed: bool,
    /// Whether the person was told that the link broke.
    is_broken: bool,
    is_over: bool,
}

/// All hubs that are listened to.
pub(super) struct ListenedHubs {
    links: Vec<HubLink>,
    exit_code: u8,
}

impl ListenedHubs {
    pub(super) fn new(hubs: Vec<HubTarget>) -> Self {
        let link =
            |hub| HubLink { hub, voice: None, is_missed: false, is_broken: false, is_over: false };
        ListenedHubs { links: hubs.into_iter().map(link).collect(), exit_code: 0 }
    }

    pub(super) fn are_several(&self) -> bool {
        self.links.len() > 1
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.links.iter().map(|it| it.hub.name.clone()).collect()
    }

    pub(super) fn address(&self, hub: HubNumber) -> &str {
        self.links.get(hub).map_or("", |it| &it.hub.address)
    }

    /// A handle for sending to a hub, as long as there is a link to it.
    pub(super) fn voice(&self, hub: HubNumber) -> Option<Voice> {
        self.links.get(hub)?.voice.clone()
    }

    /// Adds the hub's name to a sentence, if there are several hubs.
    pub(super) fn about(&self, hub: HubNumber, sentence: &str) -> String {
        let link = self.links.get(hub).filter(|_| self.are_several());
        link.map_or_else(|| sentence.to_owned(), |it| format!("{}: {sentence}", it.hub.name))
    }

    /// Closes all subscriptions.
    pub(super) async fn close(&self) {
        let closing: Vec<_> = self
            .links
            .iter()
            .filter_map(|it| it.voice.clone())
            .map(|voice| tokio::spawn(async move { voice.close(None).await }))
            .collect();
        let all = async {
            for closing in closing {
                let _ = closing.await;
            }
        };
        // If the goodbye takes too long, leave without it.
        let _ = timeout(GOODBYE, all).await;
    }
}

impl ListeningRoom {
    /// Handles a signal from a hub. Returns the exit code if no hub will send anything more.
    pub(super) fn hub_says(&mut self, hub: HubNumber, from: HubSignal) -> Option<ExitCode> {
        let link = self.hubs.links.get_mut(hub)?;
        match from {
            HubSignal::Reached(voice) => {
                link.voice = Some(voice);
                if std::mem::replace(&mut link.is_missed, false) {
                    self.tell_from(hub, &AnnouncerInput::HubNotice(english::hubs::HUB_IS_THERE));
                }
            }
            HubSignal::NotReached(failure) => {
                // The person was already told that the hub is gone.
                if !std::mem::replace(&mut link.is_missed, true) {
                    let what = english::hubs::not_reached(&in_short(&failure));
                    self.tell_from(hub, &AnnouncerInput::HubNotice(&what));
                }
            }
            HubSignal::News(news) => match *news {
                News::Ended(why) => return self.ended(hub, &why),
                news => self.hear(hub, news),
            },
        }
        None
    }

    /// Tells the person which hubs are neither reached nor known to be missing.
    pub(super) fn tell_pending(&mut self) {
        for hub in 0..self.hubs.links.len() {
            let Some(link) = self.hubs.links.get_mut(hub) else { return };
            if link.voice.is_none() && !std::mem::replace(&mut link.is_missed, true) {
                self.tell_from(hub, &AnnouncerInput::HubNotice(english::hubs::NOT_ANSWERED_YET));
            }
        }
    }

    /// Handles the end of a subscription. The others continue.
    fn ended(&mut self, hub: HubNumber, why: &Ended) -> Option<ExitCode> {
        let is_only = !self.hubs.are_several();
        let link = self.hubs.links.get_mut(hub)?;
        // A hub that closes in order may be back soon.
        let comes_back = matches!(why, Ended::ClosedByProducer(_)) && !is_only;
        (link.voice, link.is_broken, link.is_over) = (None, false, !comes_back);
        link.is_missed = comes_back;
        let mut what = why.to_string();
        if comes_back {
            what = english::hubs::over_and_tried_again(&what);
        }
        self.tell_from(hub, &AnnouncerInput::HubNotice(&what));
        if !is_only {
            self.give_up(hub);
        }
        if !matches!(why, Ended::Closed | Ended::ClosedByProducer(_)) {
            self.hubs.exit_code = COULD_NOT;
            let what = self.hubs.about(hub, &what);
            console::complain(&CommandFailure::of_sentences(
                &what,
                english::failures::LISTEN_LATER,
            ));
        }
        let are_all_over = self.hubs.links.iter().all(|it| it.is_over);
        are_all_over.then(|| ExitCode::from(self.hubs.exit_code))
    }

    fn hear(&mut self, hub: HubNumber, news: News) {
        match news {
            News::Event(event) => {
                self.was_heard(hub, &event);
                self.tell_from(hub, &AnnouncerInput::Event(&event));
            }
            News::Ask(ask) => {
                self.was_heard(hub, ask.event());
                self.receive_ask(hub, ask);
            }
            News::AskEnded(ask) => self.ask_ended(hub, &ask),
            News::AnswerNotCounted { ask, message, .. } => self.not_counted(hub, ask, &message),
            News::AskTimeChanged(ask) => {
                if let Some(number) = self.open.number_of(hub, &ask) {
                    let wanted = self.timed.take_if(|(timed, _)| *timed == number);
                    let wanted = wanted.and_then(|(_, wanted)| wanted);
                    if let Some(waiting) = self.open.get_mut(number) {
                        waiting.is_time_known = true;
                    }
                    let (remaining, is_paused) = (ask.remaining(), ask.is_paused());
                    self.tell_all(&AnnouncerInput::TimeChanged {
                        number,
                        remaining,
                        is_paused,
                        wanted,
                    });
                }
            }
            News::Gap { session_id, missed, .. } => {
                self.tell_from(hub, &AnnouncerInput::Gap { session_id: &session_id, missed });
            }
            News::Reconnecting { .. } => self.link_changed(hub, true),
            News::Reconnected => self.link_changed(hub, false),
            News::Instructed { .. } => self.instructed(hub),
            News::LeftOut { count } => self.tell_from(hub, &AnnouncerInput::LeftOut(count)),
            News::Refused { error, message } => self.refused(hub, &error, &message),
            News::WithoutHandshake => {
                self.tell_from(hub, &AnnouncerInput::HubNotice(english::hubs::WITHOUT_HANDSHAKE));
            }
            // New terms need no notice, and violations are not told to the person.
            _ => {}
        }
    }

    fn was_heard(&mut self, hub: HubNumber, event: &Event) {
        if let Some(leaving) = self.leaving.get_mut(hub) {
            leaving.heard(event);
        }
    }

    /// Handles a broken or restored link. Repeated attempts to reconnect are told only once.
    fn link_changed(&mut self, hub: HubNumber, is_broken: bool) {
        let Some(link) = self.hubs.links.get_mut(hub) else { return };
        if std::mem::replace(&mut link.is_broken, is_broken) == is_broken && is_broken {
            return;
        }
        if is_broken {
            self.forget_instructions(hub);
        }
        let input = if is_broken { AnnouncerInput::LineBroken } else { AnnouncerInput::LineBack };
        self.tell_from(hub, &input);
    }

    /// Handles a refusal by the hub. The results of answers are told with their asks instead.
    fn refused(&mut self, hub: HubNumber, error: &str, message: &str) {
        let timed = self.timed.map(|(number, _)| number);
        let timed = timed.filter(|it| self.open.get(*it).is_some_and(|it| it.hub == hub));
        if error == "not_accepted" && self.not_accepted(hub) {
            return;
        }
        if error != "invalid_token" {
            self.tell_from(hub, &AnnouncerInput::HubNotice(&printable(message)));
        } else if let Some(number) = timed {
            self.timed = None;
            let what = english::hubs::time_not_changed(number);
            self.tell_all(&AnnouncerInput::Notice(&what));
        }
        // Other refusals, such as that of a presentation notice by a hub that counts from when it asked, need no
        // words.
    }
}

/// The first sentence of a failure to reach a hub, without system error numbers.
fn in_short(failure: &CommandFailure) -> String {
    let first = failure.what().split(". ").next().unwrap_or_default();
    first.split(" (os error").next().unwrap_or_default().to_owned()
}
