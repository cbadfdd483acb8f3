//! Carries out what the person types.

use std::time::Duration;

use aaep_announce::words::exact;
use aaep_announce::{AnnouncerInput, AnsweredBy, AskEnding, AskNumber, ListeningRequest};
use aaep_bridge::acp::AcpFormAnswer;

use super::agent::ToAgent;
use super::asks::{AskSubject, ChatAnswer};
use super::room::{ChatRoom, HubPresence};
use super::typed::{self, ChatCommand, ChatLine};
use crate::answer::meaning::UnclearAnswer;
use crate::attention::asked;
use crate::english::chatting;
use crate::english::typing::{
    AGENT_SPOKE, BEGUN_TOO_SOON, FOR_ANOTHER, NOTHING_ANSWERED, NOTHING_WAITS, can_be_typed,
    question_again,
};
use crate::keyboard::TypedLine;
use crate::listen::meant::UnnumberedRefusal;
use crate::listen::reports::DeviceReports;
use crate::listen::typing::{not_meant, you_typed};

/// How many lines may wait until the agent is ready, and how long one with all its lines may be.
const MAX_PROMPTS: usize = 1000;
const MAX_PROMPT_BYTES: usize = 256 * 1024;

impl ChatRoom {
    /// Handles a typed line. Returns whether the person wants to leave.
    pub(super) async fn typed(&mut self, line: &TypedLine, reports: &mut DeviceReports) -> bool {
        // The line may answer what is on the screen, so take in first what was told before it (ruling 33).
        for told in reports.sent_so_far().await {
            self.report(told);
        }
        let begun = self.moment(line.begun);
        match typed::read(&line.text) {
            ChatLine::Nothing if self.draft.is_empty() => {}
            ChatLine::Nothing => self.text("", begun),
            ChatLine::Command(ChatCommand::Quit) => return true,
            ChatLine::Command(command) => self.command(&command),
            ChatLine::ForAgent(text) | ChatLine::Text(text) => self.text(text, begun),
            ChatLine::Slash(rest) => {
                let word = rest.split_whitespace().next().unwrap_or_default();
                if self.client.commands().iter().any(|it| it.name == word) {
                    self.text(&format!("/{rest}"), begun);
                } else {
                    self.feedback(&chatting::no_such_command(word));
                }
            }
        }
        false
    }

    /// A line that is an answer while a question is open, and a prompt otherwise.
    fn text(&mut self, text: &str, begun: Duration) {
        let (number, words) = typed::numbered(text);
        let is_asked = self.asks.all().next().is_some();
        if let (Some(number), true) = (number, is_asked) {
            return self.numbered(number, words, text, begun);
        }
        match self.asks.find_unnumbered(begun, text) {
            Ok(number) => self.answer(number, text, text, begun),
            Err(UnnumberedRefusal::Nothing) => self.prompt(text),
            Err(why) => {
                let told = not_meant(text, why);
                let is_prompt = matches!(why, UnnumberedRefusal::Another | UnnumberedRefusal::Over);
                if is_prompt {
                    self.held = Some(text.to_owned());
                    self.feedback(&format!("{told} {}", chatting::HELD));
                } else {
                    self.feedback(&chatting::with_own_commands(&told));
                }
            }
        }
    }

    /// Words that begin with a number, while a question is open.
    fn numbered(&mut self, number: AskNumber, words: &str, line: &str, begun: Duration) {
        let only = self.asks.only().map(|(number, ask)| (number, ask.takes_number()));
        if let Some((only, true)) = only.filter(|(only, _)| *only != number || words.is_empty()) {
            // The number is the answer itself.
            return match self.asks.find_unnumbered(begun, line) {
                Ok(_) => self.answer(only, line, line, begun),
                Err(why) => self.feedback(&not_meant(line, why)),
            };
        }
        let Some(ask) = self.asks.get(number) else {
            let what = if self.asks.was_asked(number) {
                FOR_ANOTHER.to_owned()
            } else {
                format!("{NOTHING_ANSWERED} {}", chatting::NO_SUCH_QUESTION)
            };
            return self.feedback(&format!("{} {what}", you_typed(line)));
        };
        if !ask.told.has_begun_at(begun) {
            return self.feedback(&format!("{} {FOR_ANOTHER}", you_typed(line)));
        }
        if words.is_empty() {
            let again = question_again(number);
            self.feedback(&format!("{} {NOTHING_ANSWERED} {again}", you_typed(line)));
            return self.tell(AnnouncerInput::Request(ListeningRequest::Question(number)));
        }
        self.answer(number, words, line, begun);
    }

    /// Words for a question, in a line that was begun at this moment.
    fn answer(&mut self, number: AskNumber, words: &str, line: &str, begun: Duration) {
        let Some(ask) = self.asks.get_mut(number) else { return };
        if ask.is_answered {
            return self.feedback(chatting::ALREADY_ANSWERED);
        }
        let answer = match ask.answer(words) {
            Ok(answer) => answer,
            Err(UnclearAnswer(why)) => {
                return self.feedback(&format!("{why} {NOTHING_ANSWERED}"));
            }
        };
        // A no hurts nobody.
        let refuses = matches!(answer, ChatAnswer::Option { refuses: true, .. });
        if !refuses && !ask.told.is_whole_at(begun, false) {
            let text = format!("{} {BEGUN_TOO_SOON} {NOTHING_ANSWERED}", you_typed(line));
            return self.tell(AnnouncerInput::TooSoon { number, text: &text });
        }
        if !refuses && ask.told.is_spoken_over_at(begun) {
            let again = question_again(number);
            let text = format!("{} {AGENT_SPOKE} {NOTHING_ANSWERED} {again}", you_typed(line));
            self.feedback(&text);
            return self.tell(AnnouncerInput::Request(ListeningRequest::Question(number)));
        }
        match (answer, &ask.subject) {
            (ChatAnswer::Option { id, .. }, AskSubject::Menu { number, .. }) => {
                let menu = *number;
                ask.is_answered = true;
                self.agent.write(ToAgent::Choose(menu, id));
            }
            (ChatAnswer::Field(answer), AskSubject::Form { .. }) => {
                self.fill_in(number, &answer, words);
            }
            _ => {}
        }
    }

    /// Fills in a field, and asks for the next one.
    fn fill_in(&mut self, number: AskNumber, answer: &AcpFormAnswer, words: &str) {
        let Some(AskSubject::Form { number: form_number, form }) =
            self.asks.get_mut(number).map(|it| &mut it.subject)
        else {
            return;
        };
        if !form.answer(answer) {
            let what = match answer {
                AcpFormAnswer::Skipped => chatting::IS_NEEDED.to_owned(),
                _ => chatting::does_not_fit(words),
            };
            return self.feedback(&what);
        }
        let (form_number, form) = (*form_number, form.clone());
        if self.asks.remove_field(number) {
            let ending = AskEnding::Answered(AnsweredBy::You);
            self.tell(AnnouncerInput::Over { number, ending });
        }
        self.ask_field(form_number, form);
    }

    /// The field of a form that is asked for now.
    fn open_field(&self) -> Option<AskNumber> {
        let mut fields =
            self.asks.all().filter(|(_, it)| matches!(it.subject, AskSubject::Form { .. }));
        fields.next().map(|(number, _)| number)
    }

    /// A line for the agent. With a backslash at its end, more follows.
    fn prompt(&mut self, text: &str) {
        let (text, is_whole) = match text.strip_suffix('\\') {
            Some(beginning) => (beginning, false),
            None => (text, true),
        };
        if self.draft.len() + text.len() > MAX_PROMPT_BYTES {
            self.draft.clear();
            return self.feedback(chatting::TOO_MANY_PROMPTS);
        }
        self.draft.push_str(text);
        if !is_whole {
            self.draft.push('\n');
            return;
        }
        let text = std::mem::take(&mut self.draft);
        self.send(text);
    }

    fn send(&mut self, text: String) {
        if text.trim().is_empty() {
            return;
        }
        if self.prompts.len() >= MAX_PROMPTS {
            return self.feedback(chatting::TOO_MANY_PROMPTS);
        }
        self.prompts.push_back(text);
        if self.client.is_ready() {
            return self.send_next();
        }
        let is_at_work = self.client.is_at_work();
        let when = if is_at_work { chatting::SENT_LATER } else { chatting::SENT_WHEN_READY };
        // Of the lines after the first one, it is clear.
        if self.prompts.len() == 1 {
            self.reply(when);
        }
    }

    fn command(&mut self, command: &ChatCommand<'_>) {
        match command {
            ChatCommand::Quit => {}
            ChatCommand::Help => {
                for (words, what) in chatting::TYPED {
                    self.reply(&can_be_typed(words, what));
                }
            }
            ChatCommand::Cancel => self.cancel(),
            ChatCommand::Send => match self.held.take() {
                Some(text) => self.send(text),
                None => self.reply(chatting::NOTHING_HELD),
            },
            ChatCommand::Modes => self.list_modes(),
            ChatCommand::Mode(named) => match self.client.set_mode(named) {
                Some(step) => self.take(step),
                None => self.reply(&chatting::no_such_mode(named)),
            },
            ChatCommand::Sessions if !self.client.can_list() => {
                self.reply(chatting::NO_SESSION_LIST);
            }
            ChatCommand::Sessions => {
                let step = self.client.list_sessions();
                self.take(step);
            }
            ChatCommand::Continue(which) => self.continue_session(which),
            ChatCommand::New if self.client.is_at_work() => self.reply(chatting::AT_WORK),
            ChatCommand::New => {
                let step = self.client.open(None);
                self.take(step);
            }
            ChatCommand::Login(way) => self.sign_in(way),
            ChatCommand::Commands => self.list_commands(),
            ChatCommand::Questions => self.list_questions(),
            ChatCommand::Skip => match self.open_field() {
                Some(number) => self.fill_in(number, &AcpFormAnswer::Skipped, ""),
                None => self.reply(chatting::NO_FORM),
            },
            ChatCommand::Decline => match self.open_field() {
                Some(number) => self.decline_form(number),
                None => self.reply(chatting::NO_FORM),
            },
            ChatCommand::Status => self.status(),
            ChatCommand::Again => {
                let open: Vec<AskNumber> = self.asks.all().map(|(number, _)| number).collect();
                if open.is_empty() {
                    self.tell(AnnouncerInput::Request(ListeningRequest::Repeat));
                }
                for number in open {
                    self.tell(AnnouncerInput::Request(ListeningRequest::Question(number)));
                }
            }
            ChatCommand::Request(wish) => self.tell(AnnouncerInput::Request(*wish)),
        }
    }

    fn list_modes(&mut self) {
        let (modes, on) = self.client.modes();
        let lines: Vec<String> =
            modes.iter().map(|it| chatting::listed_mode(it, it.id == on)).collect();
        if lines.is_empty() {
            return self.reply(chatting::NO_MODES);
        }
        for line in lines {
            self.reply(&line);
        }
        self.reply(chatting::TO_SWITCH);
    }

    fn list_commands(&mut self) {
        let is_ours = |name: &str| matches!(typed::read(&format!("/{name}")), ChatLine::Command(_));
        let commands = self.client.commands().iter();
        let lines: Vec<String> =
            commands.map(|it| chatting::listed_command(it, is_ours(&it.name))).collect();
        if lines.is_empty() {
            return self.reply(chatting::NO_COMMANDS);
        }
        for line in lines {
            self.reply(&line);
        }
    }

    fn list_questions(&mut self) {
        let line = |(number, ask): (AskNumber, &super::asks::ChatAsk)| {
            chatting::waits(number, &exact(asked::what(&ask.event)))
        };
        let lines: Vec<String> = self.asks.all().map(line).collect();
        if lines.is_empty() {
            return self.reply(NOTHING_WAITS);
        }
        for line in lines {
            self.reply(&line);
        }
    }

    fn continue_session(&mut self, which: &str) {
        if self.client.is_at_work() {
            return self.reply(chatting::AT_WORK);
        }
        if !self.client.can_continue() {
            return self.reply(chatting::CANNOT_CONTINUE);
        }
        let place = which.parse::<usize>().ok().and_then(|it| it.checked_sub(1));
        let listed = self.client.sessions();
        let named = listed.iter().find(|it| it.id == which);
        let Some(id) = place.and_then(|it| listed.get(it)).or(named).map(|it| it.id.clone()) else {
            return self.reply(chatting::NO_SUCH_SESSION);
        };
        let step = self.client.open(Some(&id));
        self.take(step);
    }

    fn sign_in(&mut self, named: &str) {
        let is_it = |it: &&aaep_bridge::acp::LoginWay| {
            it.id.eq_ignore_ascii_case(named) || it.name.eq_ignore_ascii_case(named)
        };
        let found = self.client.login_ways().iter().find(is_it).cloned();
        match found {
            Some(way) => {
                let step = self.client.sign_in(&way.id);
                self.reply(&chatting::signing_in(&way));
                self.take(step);
            }
            None if named.is_empty() && !self.client.login_ways().is_empty() => {
                let lines = chatting::login_ways(self.client.login_ways());
                for line in lines {
                    self.reply(&line);
                }
            }
            None => self.reply(chatting::NO_LOGIN),
        }
    }

    fn status(&mut self) {
        if self.client.is_at_work() {
            self.tell(AnnouncerInput::Request(ListeningRequest::Status));
        } else if self.client.is_ready() {
            self.reply(chatting::IDLE);
        } else {
            self.reply(&chatting::starting(&self.name.clone()));
        }
        let (modes, on) = self.client.modes();
        let mode = modes.iter().find(|it| it.id == on).map(chatting::mode_is);
        if let Some(mode) = mode {
            self.reply(&mode);
        }
        self.reply(match self.hub {
            HubPresence::There => chatting::HUB_IS_THERE,
            HubPresence::NotYet | HubPresence::Away => chatting::NO_HUB,
        });
    }
}
