//! The loop of `aaep listen`: news from the hubs, reports from devices, words from the person, and time.
//!
//! Every announcer gets everything and decides for its own device. An answer is sent only if the person chose it, or
//! if a rule that the person wrote gives it; then it is marked as automatic.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use aaep::{Event, printable};
use aaep_announce::device::{TimedReport, lines};
use aaep_announce::words::exact;
use aaep_announce::{
    Announcer, AnnouncerInput, AnnouncerOutcome, Answer, AskNumber, Decided, DeviceReport,
    HubNumber, KnownAgent, ListeningRequest, Order, agent_name,
};
use aaep_subscriber::{Ask, SayError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::sleep_until;

use super::asking::NumberedAsk;
use super::device_table::DEVICES;
use super::devices::DeviceSet;
use super::driving::PendingInstruction;
use super::hearing::ListenedHubs;
use super::leaving::LeavingRecord;
use super::open::UnansweredAsks;
use super::reaching::NumberedSignal;
use super::reports::DeviceReports;
use crate::answer::meaning::{AnswerMeaning, USUAL_SECONDS};
use crate::attention::asked::{self, PresentedAsk};
use crate::attention::file::NumbersFile;
use crate::console::{self, CommandFailure};
use crate::english::{self, failures};
use crate::keyboard::{self, KeyboardInput};
use crate::keys::now_unix_ms;
use crate::settings::UserSettings;
use crate::settings::rules::AnswerRule;
use crate::stop::StopSignals;

/// How many updates may be queued.
const MAX_UPDATES: usize = 256;

/// The result of a background task, or a request from the narrator.
pub(super) enum RoomUpdate {
    /// The asks gathered so far are to be told.
    Gathered,
    /// Asks have their numbers, or must do without shared ones. Riskiest first.
    Numbered(Vec<NumberedAsk>),
    /// An answer of the person could not be sent.
    NotAnswered(AskNumber, SayError),
    /// An answer by a rule was sent, or could not be.
    ByRule { hub: HubNumber, ask: Box<Ask>, rule: String, is_yes: bool, sent: Result<(), SayError> },
    /// A request about an ask's time could not be sent.
    NotTimed(AskNumber, SayError),
    /// An instruction could not be sent.
    NotInstructed(HubNumber, SayError),
    /// What happened since the person left, in lines, or why that is unknown.
    Recalled(Result<Vec<String>, CommandFailure>),
    /// The narrator of the demonstration has something to say.
    Narrated(String),
    /// The narrator waits until everything is told.
    WaitsUntilTold(oneshot::Sender<()>),
}

/// The whole state of one person's listening.
pub(super) struct ListeningRoom {
    devices: DeviceSet,
    pub(super) rules: Vec<AnswerRule>,
    pub(super) numbers: NumbersFile,
    pub(super) hubs: ListenedHubs,
    pub(super) open: UnansweredAsks,
    /// Asks that are about to be told together.
    pub(super) gathered: Vec<(HubNumber, Ask)>,
    began: Instant,
    pub(super) updates: (mpsc::Sender<RoomUpdate>, mpsc::Receiver<RoomUpdate>),
    /// The ask whose time the person wants to change, and by how much, until the hub responds.
    pub(super) timed: Option<(AskNumber, Option<Duration>)>,
    /// Instructions to agents whose results are not known yet, oldest first.
    pub(super) pending_instructions: VecDeque<PendingInstruction>,
    /// How far the person was told by each hub, for when they come back.
    pub(super) leaving: Vec<LeavingRecord>,
    /// The narrators that wait until everything is told.
    until_told: Vec<oneshot::Sender<()>>,
    /// When the last paced device stopped working.
    paced_until: Duration,
}

impl ListeningRoom {
    pub(super) fn new(
        mut devices: DeviceSet,
        settings: &UserSettings,
        numbers: NumbersFile,
        hubs: ListenedHubs,
        leaving: Vec<LeavingRecord>,
    ) -> Self {
        for channel in &mut devices.channels {
            channel.announcer.name_hubs(&hubs.names());
        }
        ListeningRoom {
            devices,
            rules: settings.rules.clone(),
            numbers,
            hubs,
            open: UnansweredAsks::default(),
            gathered: Vec::new(),
            began: Instant::now(),
            updates: mpsc::channel(MAX_UPDATES),
            timed: None,
            pending_instructions: VecDeque::new(),
            leaving,
            until_told: Vec::new(),
            paced_until: Duration::ZERO,
        }
    }

    /// A sender for telling the person something between the agents' events.
    pub(super) fn narrator(&self) -> mpsc::Sender<RoomUpdate> {
        self.updates.0.clone()
    }

    /// Listens until the end.
    pub(super) async fn run(
        mut self,
        begun: Vec<NumberedSignal>,
        mut heard: mpsc::Receiver<NumberedSignal>,
        mut reports: DeviceReports,
        mut keyboard: KeyboardInput,
    ) -> Result<ExitCode, CommandFailure> {
        let stopped = StopSignals::new().map_err(|error| {
            CommandFailure::new(failures::no_signals(&error), failures::TRY_LATER)
        })?;
        let mut stopped = std::pin::pin!(stopped.wait());
        self.tell_all(&AnnouncerInput::Notice(english::hubs::LISTENING));
        for (hub, from) in begun {
            if let Some(code) = self.hub_says(hub, from) {
                return Ok(code);
            }
        }
        self.tell_pending();
        let mut can_type = true;
        loop {
            let due = self.devices.channels.iter().filter_map(|it| it.announcer.deadline()).min();
            let due = due.and_then(|due| self.began.checked_add(due));
            let due =
                due.into_iter().chain(self.leaving.iter().filter_map(LeavingRecord::due)).min();
            let sleep = async {
                match due {
                    Some(at) => sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = &mut stopped => break,
                Some(told) = reports.next() => self.report(told),
                line = keyboard.lines.recv(), if can_type => match line {
                    Some(line) => if self.typed(&line, &mut reports).await { break },
                    None => can_type = false,
                },
                Some(update) = self.updates.1.recv() => self.handle_update(update),
                heard = heard.recv() => match heard {
                    Some((hub, from)) => if let Some(code) = self.hub_says(hub, from) {
                        self.leave().await;
                        return Ok(code);
                    },
                    None => return Ok(ExitCode::SUCCESS),
                },
                () = sleep => self.tell_all(&AnnouncerInput::Tick),
            }
            self.keep_place();
        }
        self.leave().await;
        self.hubs.close().await;
        Ok(ExitCode::SUCCESS)
    }

    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// A moment as time since listening began.
    pub(super) fn moment(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.began)
    }

    /// Notes this moment, so that nothing typed before is dated after it.
    pub(super) fn note_moment(&self) -> Duration {
        self.moment(keyboard::note_moment())
    }

    /// The person leaves now.
    async fn leave(&mut self) {
        for leaving in &mut self.leaving {
            leaving.end().await;
        }
    }

    /// Remembers how far the person was told, once every working device has said everything.
    fn keep_place(&mut self) {
        let announcers = || self.devices.channels.iter().map(|it| &it.announcer);
        let is_told = announcers().any(Announcer::has_told_everything)
            && announcers().all(|it| it.has_told_everything() || !it.is_working());
        if is_told {
            for waiting in self.until_told.drain(..) {
                // The receiver may no longer wait.
                let _ = waiting.send(());
            }
        }
        for leaving in &mut self.leaving {
            if is_told {
                leaving.told();
            }
            leaving.keep();
        }
    }

    /// Handles an update.
    fn handle_update(&mut self, update: RoomUpdate) {
        match update {
            RoomUpdate::Gathered => self.number_gathered(),
            RoomUpdate::Numbered(all) => all.iter().for_each(|it| self.tell_ask(it)),
            // Whether such an answer counts is not known. The kit's news about the ask tells the rest.
            RoomUpdate::NotAnswered(number, SayError::LineBroke) => {
                let told = english::answers::may_not_count(number);
                self.tell_all(&AnnouncerInput::Notice(&told));
            }
            RoomUpdate::NotAnswered(number, error) => {
                if let Some(waiting) = self.open.get_mut(number) {
                    waiting.is_answered = false;
                }
                let why = error.to_string();
                self.tell_all(&AnnouncerInput::AnswerFailed { number, why: &why });
            }
            RoomUpdate::NotTimed(number, error) => {
                self.tell_all(&AnnouncerInput::Notice(&english::hubs::time_not_sent(
                    number,
                    &error.to_string(),
                )));
            }
            RoomUpdate::ByRule { ask, rule, is_yes, sent: Ok(()), .. } => {
                let (what, rule) = (exact(asked::what(ask.event())), printable(&rule));
                let told = english::hubs::answered_by_rule(&rule, is_yes, &what);
                self.tell_all(&AnnouncerInput::Notice(&told));
            }
            // The person is asked, as if there were no rule.
            RoomUpdate::ByRule { hub, ask, sent: Err(_), .. } if ask.state().is_open() => {
                self.gather_ask(hub, *ask);
            }
            RoomUpdate::ByRule { .. } => {}
            RoomUpdate::NotInstructed(hub, error) => self.not_instructed(hub, &error),
            RoomUpdate::Recalled(recalled) => self.recalled(recalled),
            RoomUpdate::Narrated(words) => self.tell_all(&AnnouncerInput::Notice(&words)),
            RoomUpdate::WaitsUntilTold(waiting) => self.until_told.push(waiting),
        }
    }

    /// Passes an input to every announcer and carries out what they decide.
    pub(super) fn tell_all(&mut self, input: &AnnouncerInput<'_>) {
        for at in 0..self.devices.channels.len() {
            self.tell(at, input.clone());
        }
    }

    /// Does the same for an input from a hub.
    pub(super) fn tell_from(&mut self, hub: HubNumber, input: &AnnouncerInput<'_>) {
        let now = self.now();
        for at in 0..self.devices.channels.len() {
            let Some(channel) = self.devices.channels.get_mut(at) else { return };
            let decided = channel.announcer.handle_from(now, hub, input.clone());
            self.carry_out(at, now, decided);
        }
    }

    fn tell(&mut self, at: usize, input: AnnouncerInput<'_>) {
        self.tell_of(at, self.now(), input);
    }

    /// Passes an input that happened at this moment to one announcer.
    fn tell_of(&mut self, at: usize, moment: Duration, input: AnnouncerInput<'_>) {
        let now = self.now();
        let Some(channel) = self.devices.channels.get_mut(at) else { return };
        let decided = channel.announcer.handle(now, input);
        self.carry_out(at, moment, decided);
    }

    fn carry_out(&mut self, at: usize, moment: Duration, decided: Decided) {
        let mut decided = VecDeque::from([decided]);
        while let Some(Decided { orders, outcomes }) = decided.pop_front() {
            for order in orders {
                decided.extend(self.order(at, order));
            }
            for outcome in outcomes {
                self.apply_outcome(at, moment, outcome);
            }
        }
    }

    /// Gives an order to a device. Returns what the announcer decides if the device does not take it.
    fn order(&mut self, at: usize, order: Order) -> Option<Decided> {
        if let Order::Sound(_) = order {
            // A sound is never the only sign of anything, so a lost one does no harm.
            let _ = self.devices.sounds.as_ref().map(|sounds| sounds.tell(order));
            return None;
        }
        let now = self.now();
        let is_spoken_by_desktop = self.devices.is_spoken_by_desktop(at);
        let channel = self.devices.channels.get_mut(at)?;
        if let (Order::Say(utterance), true) = (&order, is_spoken_by_desktop) {
            // The line is not shown, and the device that speaks it reports when it was heard.
            let mut decided = channel
                .announcer
                .handle(now, AnnouncerInput::Device(DeviceReport::Began(utterance.id)));
            let ended = channel
                .announcer
                .handle(now, AnnouncerInput::Device(DeviceReport::Shown(utterance.id)));
            decided.orders.extend(ended.orders);
            decided.outcomes.extend(ended.outcomes);
            return Some(decided);
        }
        let is_taken = channel.device.tell(order).is_ok();
        let was_stuck = std::mem::replace(&mut channel.is_stuck, !is_taken);
        if is_taken || was_stuck {
            return None;
        }
        let why = DeviceReport::Trouble(english::hubs::TAKES_NO_WORDS.to_owned());
        Some(channel.announcer.handle(now, AnnouncerInput::Device(why)))
    }

    /// Carries out an outcome that an announcer wants.
    fn apply_outcome(&mut self, at: usize, moment: Duration, outcome: AnnouncerOutcome) {
        match outcome {
            AnnouncerOutcome::Presenting(number) => {
                if let Some(waiting) = self.open.get_mut(number) {
                    waiting.told.begin(moment);
                }
            }
            AnnouncerOutcome::Presented(number) => self.presented(at, number),
            AnnouncerOutcome::AgentSpoke(number) => {
                if let Some(waiting) = self.open.get_mut(number) {
                    waiting.told.speak_over(moment);
                }
            }
            AnnouncerOutcome::PresentedWhole(number) => self.presented_whole(at, moment, number),
            AnnouncerOutcome::Chosen { number, answer } => self.answer(number, meaning_of(answer)),
            AnnouncerOutcome::MoreTime(number) => {
                self.answer(number, AnswerMeaning::Extend(USUAL_SECONDS));
            }
            AnnouncerOutcome::Trouble(why) => {
                if self.is_paced(at) && !self.has_paced() {
                    self.paced_until = self.note_moment();
                }
                self.tell_others(at, &why);
                // Do not wait for a device that does not work.
                let numbers: Vec<AskNumber> = self.open.all().map(|(number, _)| number).collect();
                for number in numbers {
                    self.start_clock(number);
                }
                self.tell_lines_again(at);
            }
            AnnouncerOutcome::Works => self.tell_others(at, english::hubs::WORKS_AGAIN),
            // The device keeps the person's pace; the hubs send everything when it happens (ruling 30).
            AnnouncerOutcome::Pace(_) => {}
        }
    }

    /// The name under which the person hears of an event's agent.
    pub(super) fn agent_label(&self, hub: HubNumber, event: &Event) -> String {
        let announcer = self.devices.channels.first().map(|it| &it.announcer);
        let label = announcer.and_then(|it| it.agent_label(hub, &event.envelope.session_id));
        label.unwrap_or_else(|| agent_name(event))
    }

    /// The agents that the person hears of.
    pub(super) fn agents(&self) -> Vec<KnownAgent> {
        self.devices.channels.first().map(|it| it.announcer.agents()).unwrap_or_default()
    }

    /// Whether any device has a pace of its own.
    pub(super) fn has_pace(&self) -> bool {
        let mut devices = self.devices.channels.iter().map(|it| it.device.name());
        let has_pace = |name| DEVICES.iter().any(|it| it.name == name && it.has_pace);
        devices.any(has_pace)
    }

    /// When the desktop's screen reader fails, the lines that were silent for it tell the open asks.
    fn tell_lines_again(&mut self, at: usize) {
        let Some(lines) = self.devices.silent_lines(at) else { return };
        let numbers: Vec<AskNumber> = self.open.all().map(|(number, _)| number).collect();
        for number in numbers {
            self.tell(lines, AnnouncerInput::Request(ListeningRequest::Question(number)));
        }
    }

    /// Tells something about one device through the others.
    fn tell_others(&mut self, at: usize, what: &str) {
        let Some(channel) = self.devices.channels.get(at) else { return };
        let text = english::hubs::about_device(channel.device.name(), what);
        if self.devices.channels.len() == 1 {
            console::say(&text);
        }
        for other in (0..self.devices.channels.len()).filter(|other| *other != at) {
            self.tell(other, AnnouncerInput::Notice(&text));
        }
    }

    /// A device has presented an ask.
    fn presented(&mut self, at: usize, number: AskNumber) {
        let Some(device) = self.devices.channels.get(at).map(|it| it.device.name()) else { return };
        if let Some(waiting) = self.open.get_mut(number) {
            waiting.told.present(device);
        }
        self.start_clock(number);
    }

    /// The time of an ask counts from when the slowest device has presented it, if the hub counts that way.
    fn start_clock(&mut self, number: AskNumber) {
        let channels = self.devices.channels.iter().filter(|it| it.announcer.is_working());
        let working: Vec<&str> = channels.map(|it| it.device.name()).collect();
        let Some(waiting) = self.open.get_mut(number) else { return };
        if waiting.is_presented || !waiting.told.is_presented_by(&working) {
            return;
        }
        waiting.is_presented = true;
        let ask = waiting.ask.clone();
        tokio::spawn(async move {
            // A hub that does not receive it counts from when it asked; nothing else can be done.
            let _ = ask.presented().await;
        });
    }

    /// A device told an ask completely. If that suffices for an answer here, it also does for `aaep answer`.
    fn presented_whole(&mut self, at: usize, moment: Duration, number: AskNumber) {
        let Some(device) = self.devices.channels.get(at).map(|it| it.device.name()) else { return };
        let has_paced = self.has_paced();
        let Some(waiting) = self.open.get_mut(number) else { return };
        waiting.told.end(device, moment);
        let Some(known) = PresentedAsk::of(waiting.ask.event())
            .filter(|_| waiting.told.is_whole_at(moment, has_paced))
        else {
            return;
        };
        let (numbers, ago) = (self.numbers.clone(), self.now().saturating_sub(moment));
        let at_unix_ms = now_unix_ms().saturating_sub(i64::try_from(ago.as_millis()).unwrap_or(0));
        spawn_blocking(move || {
            if let Err(failure) = numbers.change(|it| it.presented(at_unix_ms, &known)) {
                console::complain(&failure);
            }
        });
    }

    /// Whether a paced device works, so that the lines may not have been read yet.
    fn has_paced(&self) -> bool {
        let mut channels = (0..).zip(&self.devices.channels);
        channels.any(|(at, it)| self.is_paced(at) && it.announcer.is_working())
    }

    /// Whether a paced device works, or worked at this moment.
    pub(super) fn has_paced_at(&self, moment: Duration) -> bool {
        moment < self.paced_until || self.has_paced()
    }

    fn is_paced(&self, at: usize) -> bool {
        self.devices.channels.get(at).is_some_and(|it| it.device.name() != lines::NAME)
    }

    pub(super) fn report(&mut self, told: TimedReport) {
        let at = self.devices.channels.iter().position(|it| it.device.name() == told.device);
        match (at, told.report) {
            (Some(at), report) => {
                // Lines note the moment themselves, between the question and the prompt.
                let is_noted = told.device == lines::NAME;
                let moment = if is_noted { self.moment(told.at) } else { self.note_moment() };
                self.tell_of(at, moment, AnnouncerInput::Device(report));
            }
            // The sound device has no announcer.
            (None, DeviceReport::Trouble(why) | DeviceReport::Notice(why)) => {
                self.tell_all(&AnnouncerInput::Notice(&english::hubs::about_device(
                    told.device,
                    &why,
                )));
            }
            (None, _) => {}
        }
    }

    /// Sends the person's answer, or their request about an ask's time.
    pub(super) fn answer(&mut self, number: AskNumber, meaning: AnswerMeaning) {
        let Some(waiting) = self.open.get_mut(number) else { return };
        let is_time = matches!(
            meaning,
            AnswerMeaning::Extend(_) | AnswerMeaning::Pause | AnswerMeaning::Resume
        );
        waiting.is_answered |= !is_time;
        if is_time {
            let wanted = match meaning {
                AnswerMeaning::Extend(seconds) => Some(Duration::from_secs(seconds)),
                _ => None,
            };
            self.timed = Some((number, wanted));
        }
        let (ask, updates) = (waiting.ask.clone(), self.updates.0.clone());
        tokio::spawn(async move {
            let sent = match meaning {
                AnswerMeaning::Accept => ask.accept().await,
                AnswerMeaning::Reject => ask.reject().await,
                AnswerMeaning::Respond(response) => ask.answer(response).await,
                AnswerMeaning::Extend(seconds) => ask.extend(seconds).await,
                AnswerMeaning::Pause => ask.pause().await,
                AnswerMeaning::Resume => ask.resume().await,
            };
            let Err(error) = sent else { return };
            let update = if is_time {
                RoomUpdate::NotTimed(number, error)
            } else {
                RoomUpdate::NotAnswered(number, error)
            };
            // If the listening has ended, this does not matter.
            let _ = updates.send(update).await;
        });
    }
}

fn meaning_of(answer: Answer) -> AnswerMeaning {
    match answer {
        Answer::Decision(aaep::event::human::Decision::Accept) => AnswerMeaning::Accept,
        Answer::Decision(aaep::event::human::Decision::Reject) => AnswerMeaning::Reject,
        Answer::Response(response) => AnswerMeaning::Respond(response),
    }
}
