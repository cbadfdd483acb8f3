//! The loop of a chat: what the agent says, what the person types, reports of the lines, and time.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use aaep_announce::device::TimedReport;
use aaep_announce::{
    AnnouncerInput, AnnouncerOutcome, AskEnding, AskNumber, Asked, Decided, Preferences,
};
use aaep_bridge::acp::{AcpClient, AcpClientStep, AcpOpening};
use tokio::time::sleep_until;

use super::agent::{AgentEnd, RunningAgent, ToAgent};
use super::asks::{AskSubject, ChatAsks};
use super::front::FrontNews;
use super::told::ToldEvents;
use crate::console::{self, CommandFailure};
use crate::english::{chatting, failures};
use crate::keyboard::KeyboardInput;
use crate::listen::devices::DeviceChannel;
use crate::listen::reports::DeviceReports;
use crate::stop::StopSignals;

/// Control-C twice within this time leaves.
const TWICE_WITHIN: Duration = Duration::from_secs(5);

/// How long the agent has to end by itself when the person leaves.
const END_TIMEOUT: Duration = Duration::from_secs(6);

/// The hub, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HubPresence {
    NotYet,
    There,
    Away,
}

/// The whole state of a chat.
#[expect(clippy::struct_excessive_bools, reason = "each changes for itself")]
pub(super) struct ChatRoom {
    channel: DeviceChannel,
    began: Instant,
    /// The name of the agent for people, until it says its own. Foreign text.
    pub(super) name: String,
    pub(super) client: AcpClient,
    first: AcpClientStep,
    pub(super) agent: RunningAgent,
    pub(super) asks: ChatAsks,
    pub(super) told: ToldEvents,
    /// Lines that are sent when the agent is ready.
    pub(super) prompts: VecDeque<String>,
    /// The beginning of a prompt whose last line ended with a backslash.
    pub(super) draft: String,
    /// A line that was not sent because a question came.
    pub(super) held: Option<String>,
    pub(super) hub: HubPresence,
    /// Whether nothing more can be typed.
    pub(super) has_input_ended: bool,
    pub(super) was_told_of_lines: bool,
    last_interrupt: Option<Instant>,
    /// How the last turn ended: whether it came to its end.
    pub(super) was_completed: bool,
    /// Whether nothing can be done with this agent.
    pub(super) has_failed: bool,
}

impl ChatRoom {
    pub(super) fn new(
        mut channel: DeviceChannel,
        name: String,
        (folder, opening): (&str, AcpOpening),
        agent: RunningAgent,
    ) -> Self {
        // The person knows that they have just prompted the agent.
        let preferences = channel.announcer.preferences().clone();
        channel.announcer.prefer(Preferences { states: false, ..preferences });
        let (client, first) = AcpClient::new(folder, opening);
        ChatRoom {
            channel,
            began: Instant::now(),
            name,
            client,
            first,
            agent,
            asks: ChatAsks::default(),
            told: ToldEvents::default(),
            prompts: VecDeque::new(),
            draft: String::new(),
            held: None,
            hub: HubPresence::NotYet,
            has_input_ended: false,
            was_told_of_lines: false,
            last_interrupt: None,
            was_completed: true,
            has_failed: false,
        }
    }

    /// Chats until the person leaves or the agent ends.
    pub(super) async fn run(
        mut self,
        mut reports: DeviceReports,
        mut keyboard: KeyboardInput,
    ) -> Result<ExitCode, CommandFailure> {
        let no_signals = |error: std::io::Error| {
            CommandFailure::new(failures::no_signals(&error), failures::TRY_LATER)
        };
        let stopped = StopSignals::new().and_then(StopSignals::or_hung_up).map_err(no_signals)?;
        let mut stopped = std::pin::pin!(stopped.wait_without_interrupt());
        self.notice(&chatting::starting(&self.name.clone()));
        let first = std::mem::take(&mut self.first);
        self.take(first);
        let mut status = None;
        while !self.is_over() {
            let due = self.channel.announcer.deadline().and_then(|it| self.began.checked_add(it));
            let sleep = async {
                match due {
                    Some(at) => sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = &mut stopped => break,
                interrupted = tokio::signal::ctrl_c() => {
                    if interrupted.is_err() || self.interrupted() { break }
                }
                Some(told) = reports.next() => self.report(told),
                line = keyboard.lines.recv(), if !self.has_input_ended => match line {
                    Some(line) => if self.typed(&line, &mut reports).await { break },
                    None => self.input_ended(),
                },
                news = self.agent.news.next() => match news {
                    Some(news) => self.hear(news),
                    None => break,
                },
                ended = &mut self.agent.ended => {
                    status = Some(ended.unwrap_or_default());
                    break;
                }
                () = sleep => self.tell(AnnouncerInput::Tick),
            }
        }
        let code = self.leave(status).await;
        self.until_told(&mut reports).await;
        Ok(code)
    }

    /// Whether nothing is left to do.
    fn is_over(&self) -> bool {
        let is_idle = self.client.is_ready() && self.prompts.is_empty();
        self.has_failed && (self.has_input_ended || self.client.login_ways().is_empty())
            || self.has_input_ended && is_idle && self.asks.all().next().is_none()
    }

    /// Ends the agent, and tells how it ended if it did so by itself.
    async fn leave(&mut self, status: Option<AgentEnd>) -> ExitCode {
        let has_died = status.is_some();
        if !has_died {
            if self.client.is_at_work() {
                let step = self.client.cancel();
                self.take(step);
            }
            self.agent.stop();
            let _ = tokio::time::timeout(END_TIMEOUT, &mut self.agent.ended).await;
        }
        while let Ok(Some(news)) =
            tokio::time::timeout(Duration::ZERO, self.agent.news.next()).await
        {
            self.hear(news);
        }
        let open: Vec<AskNumber> = self.asks.all().map(|(number, _)| number).collect();
        for number in open {
            self.close(number, AskEnding::Withdrawn);
        }
        if has_died {
            let code = status.and_then(|it| it.0).and_then(|it| it.code());
            self.notice(&chatting::has_ended(&self.name.clone(), code));
            for line in self.agent.last_lines() {
                self.notice(&chatting::its_last_line(&line));
            }
        } else if let Some(session) =
            self.client.session_id().filter(|_| self.client.can_continue())
        {
            let words = chatting::continue_later(session);
            self.notice(&words);
        }
        // The hub may need a moment for what is left.
        let has_told = self.agent.has_told_hub();
        if !has_told && self.hub == HubPresence::There {
            self.notice(chatting::HUB_NOT_TOLD);
        }
        if has_died || self.has_failed {
            ExitCode::from(console::COULD_NOT)
        } else if self.has_input_ended && !self.was_completed {
            ExitCode::from(1)
        } else {
            ExitCode::SUCCESS
        }
    }

    /// Waits until everything is on the screen.
    async fn until_told(&mut self, reports: &mut DeviceReports) {
        const PATIENCE: Duration = Duration::from_secs(2);
        let all = async {
            while !self.channel.announcer.has_told_everything() {
                let Some(told) = reports.next().await else { return };
                self.report(told);
            }
        };
        let _ = tokio::time::timeout(PATIENCE, all).await;
    }

    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// A moment as time since the chat began.
    pub(super) fn moment(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.began)
    }

    /// Control-C: the agent stops; once more, and the person leaves.
    fn interrupted(&mut self) -> bool {
        let is_second = self.last_interrupt.is_some_and(|it| it.elapsed() < TWICE_WITHIN);
        self.last_interrupt = Some(Instant::now());
        if is_second {
            return true;
        }
        if self.client.is_at_work() {
            self.cancel();
        } else {
            self.reply(chatting::TO_LEAVE);
        }
        false
    }

    /// Asks the agent to stop.
    pub(super) fn cancel(&mut self) {
        if !self.client.is_at_work() {
            return self.reply(chatting::NOT_AT_WORK);
        }
        if !self.prompts.is_empty() {
            self.prompts.clear();
            self.reply(chatting::NOT_SENT_DROPPED);
        }
        let step = self.client.cancel();
        self.take(step);
        self.reply(chatting::STOPPING);
    }

    /// Sends what the client wants to say, and tells its news.
    pub(super) fn take(&mut self, step: AcpClientStep) {
        for message in step.to_agent {
            self.agent.write(ToAgent::Say(message));
        }
        for news in step.news {
            self.tell_news(news);
        }
    }

    /// Sends the next line that waits, if the agent is ready.
    pub(super) fn send_next(&mut self) {
        if !self.client.is_ready() {
            return;
        }
        if let Some(text) = self.prompts.pop_front() {
            // The next Control-C is about this turn.
            self.last_interrupt = None;
            let step = self.client.prompt(&text);
            self.take(step);
        }
    }

    /// Handles what the agent's side has to say.
    fn hear(&mut self, news: FrontNews) {
        match news {
            FrontNews::Message(message) => {
                let step = self.client.hear(&message);
                self.take(step);
                self.send_next();
            }
            FrontNews::Shown(shown) => self.show(*shown),
            FrontNews::NotAMessage => {
                if !std::mem::replace(&mut self.was_told_of_lines, true) {
                    self.notice(chatting::NOT_MESSAGES);
                }
            }
            FrontNews::Note(note) => self.note(&note),
        }
    }

    /// Presents a question that is known under this number.
    pub(super) fn present(&mut self, number: AskNumber) {
        let Some(event) = self.asks.get(number).map(|it| it.event.clone()) else { return };
        let asked = Asked { number, event: &event, remaining: Duration::MAX, can_answer: true };
        self.tell(AnnouncerInput::Asked(asked));
    }

    /// A question is over.
    pub(super) fn close(&mut self, number: AskNumber, ending: AskEnding) {
        if self.asks.remove(self.now(), number).is_some() {
            self.tell(AnnouncerInput::Over { number, ending });
        }
    }

    /// Nothing more can be typed, so the questions that nobody else can answer are refused.
    fn input_ended(&mut self) {
        self.has_input_ended = true;
        if !self.draft.is_empty() {
            let draft = std::mem::take(&mut self.draft);
            self.prompts.push_back(draft);
        }
        self.send_next();
        self.refuse_unanswerable();
    }

    /// Refuses what nobody can answer any more.
    pub(super) fn refuse_unanswerable(&mut self) {
        if !self.has_input_ended {
            return;
        }
        let is_elsewhere = self.hub == HubPresence::There;
        let mut refused = Vec::new();
        for (number, ask) in self.asks.all() {
            match &ask.subject {
                AskSubject::Menu { number: menu, refusals }
                    if ask.is_only_here || !is_elsewhere =>
                {
                    refused.push((number, Some((*menu, refusals.clone()))));
                }
                AskSubject::Form { .. } => refused.push((number, None)),
                AskSubject::Menu { .. } => {}
            }
        }
        if !refused.is_empty() {
            self.notice(chatting::NOBODY_ELSE);
        }
        for (number, menu) in refused {
            match menu {
                Some((menu, refusals)) => self.refuse_menu(menu, &refusals),
                None => self.decline_form(number),
            }
        }
    }

    /// Refuses a permission request by an option that refuses, or by ending the turn.
    pub(super) fn refuse_menu(&mut self, menu: aaep_bridge::ProxyAskNumber, refusals: &[String]) {
        if let [only] = refusals {
            self.agent.write(ToAgent::Choose(menu, only.clone()));
        } else {
            let step = self.client.cancel();
            self.take(step);
        }
    }

    pub(super) fn notice(&mut self, words: &str) {
        self.tell(AnnouncerInput::Notice(words));
    }

    /// Tells the person something that they have just asked for.
    pub(super) fn reply(&mut self, text: &str) {
        for line in text.lines() {
            self.tell(AnnouncerInput::Requested(line));
        }
    }

    /// Tells the result of a typed line.
    pub(super) fn feedback(&mut self, text: &str) {
        self.tell(AnnouncerInput::Feedback(text));
    }

    pub(super) fn tell(&mut self, input: AnnouncerInput<'_>) {
        let now = self.now();
        let decided = self.channel.announcer.handle(now, input);
        self.carry_out(now, decided);
    }

    pub(super) fn report(&mut self, told: TimedReport) {
        let (now, moment) = (self.now(), self.moment(told.at));
        let decided = self.channel.announcer.handle(now, AnnouncerInput::Device(told.report));
        self.carry_out(moment, decided);
    }

    fn carry_out(&mut self, moment: Duration, decided: Decided) {
        for order in decided.orders {
            // Lines that nobody reads any more end the program.
            let _ = self.channel.device.tell(order);
        }
        for outcome in decided.outcomes {
            match outcome {
                AnnouncerOutcome::Presenting(number) => {
                    if let Some(ask) = self.asks.get_mut(number) {
                        ask.told.begin(moment);
                    }
                }
                AnnouncerOutcome::AgentSpoke(number) => {
                    if let Some(ask) = self.asks.get_mut(number) {
                        ask.told.speak_over(moment);
                    }
                }
                AnnouncerOutcome::PresentedWhole(number) => {
                    if let Some(ask) = self.asks.get_mut(number) {
                        ask.told.end(self.channel.device.name(), moment);
                    }
                }
                AnnouncerOutcome::Trouble(why) => console::say(&why),
                _ => {}
            }
        }
    }
}
