//! What the agent's side has to say, as questions and lines.

use aaep_announce::{AnnouncerInput, AnsweredBy, AskEnding, AskNumber};
use aaep_bridge::acp::{AcpClientNews, AcpForm, AcpFormNumber, AcpMenu, AcpMenuEnding};
use serde_json::Value;

use super::asks::{AskSubject, is_whole};
use super::form;
use super::front::ShownPlan;
use super::room::{ChatRoom, HubPresence};
use crate::english::chatting;
use crate::proxied::note::ProxyNote;

impl ChatRoom {
    /// Shows what the bridge decided, in order.
    pub(super) fn show(&mut self, shown: ShownPlan) {
        for (menu, ending) in shown.closed_menus {
            let Some(number) = self.asks.number_of_menu(menu) else { continue };
            let settled = |is_refused, by| {
                if is_refused { AskEnding::Rejected(by) } else { AskEnding::Accepted(by) }
            };
            let ending = match ending {
                AcpMenuEnding::Here { is_refused } => settled(is_refused, AnsweredBy::You),
                AcpMenuEnding::Elsewhere { is_refused } => {
                    settled(is_refused, AnsweredBy::Elsewhere)
                }
                AcpMenuEnding::Withdrawn | AcpMenuEnding::Changed => AskEnding::Withdrawn,
            };
            self.close(number, ending);
        }
        let begins = shown.events.iter().any(|it| it["type"] == "aaep:agent.session.started");
        for event in shown.events {
            // The question itself is shown here, and the mode in which a turn begins is known.
            let is_mode = begins && event["type"] == "aaep:agent.progress.updated";
            if event["to_state"] == "awaiting_input" || is_mode {
                continue;
            }
            self.note_end(&event);
            if let Some(event) = self.told.complete(event) {
                self.tell(AnnouncerInput::Event(&event));
            }
        }
        if let Some(menu) = shown.menu {
            self.open_menu(menu);
        }
        if let Some(number) = shown.only_here.and_then(|it| self.asks.number_of_menu(it)) {
            if let Some(ask) = self.asks.get_mut(number) {
                ask.is_only_here = true;
            }
            self.refuse_unanswerable();
        }
    }

    fn note_end(&mut self, event: &Value) {
        match event["type"].as_str().unwrap_or_default() {
            "aaep:agent.session.completed" => self.was_completed = true,
            "aaep:agent.session.errored" | "aaep:agent.session.cancelled" => {
                self.was_completed = false;
            }
            _ => {}
        }
    }

    fn open_menu(&mut self, menu: AcpMenu) {
        let AcpMenu { number, event, refusals } = menu;
        let choices = event["choices"].as_array().map_or(0, Vec::len);
        let event = self.told.complete(event).filter(|it| is_whole(it, choices));
        let Some(event) = event else {
            self.notice(chatting::NOT_WHOLE);
            self.refuse_menu(number, &refusals);
            return;
        };
        let number = self.asks.add(event, AskSubject::Menu { number, refusals });
        self.present(number);
        self.refuse_unanswerable();
    }

    /// Asks for the field of a form that comes now. If there is none, the form is sent.
    pub(super) fn ask_field(&mut self, number: AcpFormNumber, form: AcpForm) {
        let Some((fields, choices)) = form::question(&form) else {
            let step = self.client.answer_form(number, Some(&form));
            self.take(step);
            return self.notice(chatting::FORM_SENT);
        };
        let event = self.told.question(&self.name, fields).filter(|it| is_whole(it, choices));
        let Some(event) = event else {
            let step = self.client.answer_form(number, None);
            self.take(step);
            return self.notice(&chatting::form_not_put(&form.message));
        };
        let number = self.asks.add(event, AskSubject::Form { number, form });
        self.present(number);
        self.refuse_unanswerable();
    }

    /// Declines the form to which a question belongs.
    pub(super) fn decline_form(&mut self, number: AskNumber) {
        let subject = self.asks.get(number).map(|it| &it.subject);
        let Some(AskSubject::Form { number: form, .. }) = subject else { return };
        let step = self.client.answer_form(*form, None);
        self.close(number, AskEnding::Withdrawn);
        self.take(step);
        self.notice(chatting::FORM_DECLINED);
    }

    pub(super) fn note(&mut self, note: &ProxyNote) {
        match note {
            ProxyNote::HubIsThere => {
                self.hub = HubPresence::There;
                self.notice(chatting::HUB_IS_THERE);
            }
            // Without a hub, nothing is missing here.
            ProxyNote::HubIsAway(_) | ProxyNote::HubIsBack if self.hub == HubPresence::NotYet => {}
            ProxyNote::HubIsAway(_) => {
                self.hub = HubPresence::Away;
                self.notice(chatting::HUB_IS_AWAY);
                self.refuse_unanswerable();
            }
            ProxyNote::HubIsBack => {
                self.hub = HubPresence::There;
                self.notice(chatting::HUB_IS_BACK);
            }
            ProxyNote::NotTold(_) | ProxyNote::LastNotTold(_) => {}
            ProxyNote::TooLong => self.notice(chatting::TOO_LONG),
            ProxyNote::Notice(words) => {
                let words = aaep::printable(words).into_owned();
                self.notice(&words);
            }
        }
    }

    /// Tells news of the client.
    pub(super) fn tell_news(&mut self, news: AcpClientNews) {
        match news {
            AcpClientNews::OtherVersion => {
                let words = chatting::other_version(&self.name);
                self.fail(&words);
            }
            AcpClientNews::Opened { agent, last } => self.opened(agent, last),
            AcpClientNews::NothingToContinue => self.notice(chatting::NOTHING_TO_CONTINUE),
            AcpClientNews::NotOpened(why) => {
                let words = chatting::not_opened(&self.name, &why);
                if self.client.session_id().is_none() {
                    self.fail(&words);
                } else {
                    self.notice(&words);
                }
            }
            AcpClientNews::SignInNeeded(ways) => {
                for line in chatting::sign_in(&self.name, &ways) {
                    self.notice(&line);
                }
                self.has_failed |= self.client.session_id().is_none();
            }
            AcpClientNews::NotSignedIn(why) => self.notice(&chatting::not_signed_in(&why)),
            AcpClientNews::Sessions(sessions) if sessions.is_empty() => {
                self.reply(chatting::NO_SESSIONS);
            }
            AcpClientNews::Sessions(sessions) => {
                for (at, session) in sessions.iter().enumerate() {
                    self.reply(&chatting::listed_session(at + 1, session));
                }
                self.reply(chatting::TO_CONTINUE);
            }
            AcpClientNews::NoSessions(why) => self.reply(&chatting::sessions_not_listed(&why)),
            AcpClientNews::Mode(mode) => {
                // In a turn, the bridge tells it.
                if !self.client.is_at_work() {
                    self.notice(&chatting::mode_is(&mode));
                }
            }
            AcpClientNews::ModeRefused(why) => self.notice(&chatting::mode_refused(&why)),
            AcpClientNews::TurnOver => {}
            AcpClientNews::Form(number, form) => self.ask_field(number, form),
            AcpClientNews::FormWithdrawn(form) => {
                if let Some(number) = self.asks.number_of_form(form) {
                    self.close(number, AskEnding::Withdrawn);
                }
            }
            AcpClientNews::FormDeclined(message) => {
                self.notice(&chatting::form_not_put(&message));
            }
        }
    }

    fn fail(&mut self, words: &str) {
        self.notice(words);
        self.has_failed = true;
        self.was_completed = false;
    }

    fn opened(&mut self, agent: String, last: Option<(String, String)>) {
        self.has_failed = false;
        if !agent.is_empty() {
            self.name = agent;
        }
        if let Some((prompt, answer)) = last {
            self.notice(chatting::CONTINUED);
            if !prompt.is_empty() {
                self.notice(&chatting::you_said_last(&prompt));
            }
            if !answer.is_empty() {
                self.notice(&chatting::it_said_last(&answer));
            }
        }
        let (modes, on) = self.client.modes();
        let mode = modes.iter().find(|it| it.id == on);
        let words = chatting::ready(&self.name, mode);
        self.notice(&words);
    }
}
