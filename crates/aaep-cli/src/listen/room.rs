//! The loop of listening: news from the hubs, reports from devices, words from the person, and time.
//!
//! Every announcer hears everything and decides for its own device. An answer goes out only because the person
//! chose it, or because a rule says so that the person wrote; then it is marked as automatic.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use aaep::{Event, printable};
use aaep_announce::device::{Told, braille, lines, speech};
use aaep_announce::words::exact;
use aaep_announce::{
    Announcer, Answer, AskNumber, Decided, HubNumber, Input, KnownAgent, Order, Outcome as Wanted,
    Report, Wish, agent_name,
};
use aaep_subscriber::{Ask, SayError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::sleep_until;

use super::asking::Numbered;
use super::devices::Devices;
use super::driving::OnItsWay;
use super::hearing::Hubs;
use super::leaving::Leaving;
use super::open::Open;
use super::reaching::Heard;
use super::reports::DeviceReports;
use crate::answer::meaning::{Meaning, USUAL_SECONDS};
use crate::attention::asked::{self, Asked};
use crate::attention::file::NumbersFile;
use crate::console::{self, Failure};
use crate::english;
use crate::keyboard::{self, Keyboard};
use crate::keys::now_unix_ms;
use crate::settings::Settings;
use crate::settings::rules::Rule;
use crate::stop::Stopped;

/// How many answers may be on their way at once.
const MAX_ON_THEIR_WAY: usize = 256;

/// What came of something that was sent, or waited for elsewhere.
pub(super) enum Came {
    /// What was asked at this moment is to be told.
    Gathered,
    /// Questions have their numbers, or must do without those that are shared. The riskiest comes first.
    Numbered(Vec<Numbered>),
    /// An answer of the person did not go out.
    NotAnswered(AskNumber, SayError),
    /// An answer by a rule went out, or did not.
    ByRule { hub: HubNumber, ask: Box<Ask>, rule: String, is_yes: bool, sent: Result<(), SayError> },
    /// A wish about time did not go out.
    NotTimed(AskNumber, SayError),
    /// Something did not go out to an agent.
    NotInstructed(HubNumber, SayError),
    /// What happened since the person left, in lines, or why nobody knows.
    Recalled(Result<Vec<String>, Failure>),
    /// Whoever shows this to the person has something to say.
    Narrated(String),
    /// Somebody waits until everything is told.
    WaitsUntilTold(oneshot::Sender<()>),
}

/// Everything that one person's listening consists of.
pub(super) struct Room {
    devices: Devices,
    pub(super) rules: Vec<Rule>,
    pub(super) numbers: NumbersFile,
    pub(super) hubs: Hubs,
    pub(super) open: Open,
    /// Questions that are about to be told together.
    pub(super) gathered: Vec<(HubNumber, Ask)>,
    began: Instant,
    pub(super) came: (mpsc::Sender<Came>, mpsc::Receiver<Came>),
    /// The question whose time the person wants to be changed, and by how much, until that is answered.
    pub(super) timed: Option<(AskNumber, Option<Duration>)>,
    /// What the person told agents, until it is known what came of it, the oldest first.
    pub(super) on_their_way: VecDeque<OnItsWay>,
    /// How far the person was told by each hub, for when they come back.
    pub(super) leaving: Vec<Leaving>,
    /// Those who wait until everything is told.
    until_told: Vec<oneshot::Sender<()>>,
    /// When the last device that takes its time stopped working.
    paced_until: Duration,
}

impl Room {
    pub(super) fn new(
        mut devices: Devices,
        settings: &Settings,
        numbers: NumbersFile,
        hubs: Hubs,
        leaving: Vec<Leaving>,
    ) -> Self {
        for channel in &mut devices.channels {
            channel.announcer.name_hubs(&hubs.names());
        }
        Room {
            devices,
            rules: settings.rules.clone(),
            numbers,
            hubs,
            open: Open::default(),
            gathered: Vec::new(),
            began: Instant::now(),
            came: mpsc::channel(MAX_ON_THEIR_WAY),
            timed: None,
            on_their_way: VecDeque::new(),
            leaving,
            until_told: Vec::new(),
            paced_until: Duration::ZERO,
        }
    }

    /// A way to say something to the person beside the agents.
    pub(super) fn narrator(&self) -> mpsc::Sender<Came> {
        self.came.0.clone()
    }

    /// Listens until it is over.
    pub(super) async fn run(
        mut self,
        begun: Vec<Heard>,
        mut heard: mpsc::Receiver<Heard>,
        mut reports: DeviceReports,
        mut keyboard: Keyboard,
    ) -> Result<ExitCode, Failure> {
        let stopped = Stopped::new().map_err(|error| {
            Failure::new(format!("the system tells no signals: {error}"), "Try again later.")
        })?;
        let mut stopped = std::pin::pin!(stopped.wait());
        self.tell_all(&Input::Notice(english::hubs::LISTENING));
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
            let due = due.into_iter().chain(self.leaving.iter().filter_map(Leaving::due)).min();
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
                Some(came) = self.came.1.recv() => self.settled(came),
                heard = heard.recv() => match heard {
                    Some((hub, from)) => if let Some(code) = self.hub_says(hub, from) {
                        self.leave().await;
                        return Ok(code);
                    },
                    None => return Ok(ExitCode::SUCCESS),
                },
                () = sleep => self.tell_all(&Input::Tick),
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

    /// This moment, so noted that nothing is dated after it that was typed before.
    pub(super) fn note_moment(&self) -> Duration {
        self.moment(keyboard::note_moment())
    }

    /// The person leaves now.
    async fn leave(&mut self) {
        for leaving in &mut self.leaving {
            leaving.end().await;
        }
    }

    /// Remembers how far the person was told, once every device that works has said everything.
    fn keep_place(&mut self) {
        let announcers = || self.devices.channels.iter().map(|it| &it.announcer);
        let is_told = announcers().any(Announcer::has_told_everything)
            && announcers().all(|it| it.has_told_everything() || !it.is_working());
        if is_told {
            for waiting in self.until_told.drain(..) {
                // Whoever no longer waits does not need it.
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

    /// What came of something that was sent.
    fn settled(&mut self, came: Came) {
        match came {
            Came::Gathered => self.number(),
            Came::Numbered(all) => all.iter().for_each(|it| self.tell_ask(it)),
            Came::NotAnswered(number, error) => {
                if let Some(waiting) = self.open.get_mut(number) {
                    waiting.is_answered = false;
                }
                let why = error.to_string();
                self.tell_all(&Input::AnswerFailed { number, why: &why });
            }
            Came::NotTimed(number, error) => {
                self.tell_all(&Input::Notice(&english::hubs::time_not_sent(
                    number,
                    &error.to_string(),
                )));
            }
            Came::ByRule { ask, rule, is_yes, sent: Ok(()), .. } => {
                let (what, rule) = (exact(asked::what(ask.event())), printable(&rule));
                let told = english::hubs::answered_by_rule(&rule, is_yes, &what);
                self.tell_all(&Input::Notice(&told));
            }
            // The person is asked, as if there were no rule.
            Came::ByRule { hub, ask, sent: Err(_), .. } if ask.state().is_open() => {
                self.ask(hub, *ask);
            }
            Came::ByRule { .. } => {}
            Came::NotInstructed(hub, error) => self.not_instructed(hub, &error),
            Came::Recalled(recalled) => self.recalled(recalled),
            Came::Narrated(words) => self.tell_all(&Input::Notice(&words)),
            Came::WaitsUntilTold(waiting) => self.until_told.push(waiting),
        }
    }

    /// Every announcer hears it, and every device is told what follows.
    pub(super) fn tell_all(&mut self, input: &Input<'_>) {
        for at in 0..self.devices.channels.len() {
            self.tell(at, input.clone());
        }
    }

    /// The same of what comes from a hub.
    pub(super) fn tell_from(&mut self, hub: HubNumber, input: &Input<'_>) {
        let now = self.now();
        for at in 0..self.devices.channels.len() {
            let Some(channel) = self.devices.channels.get_mut(at) else { return };
            let decided = channel.announcer.handle_from(now, hub, input.clone());
            self.carry_out(at, now, decided);
        }
    }

    fn tell(&mut self, at: usize, input: Input<'_>) {
        self.tell_of(at, self.now(), input);
    }

    /// The same of what happened at this moment.
    fn tell_of(&mut self, at: usize, moment: Duration, input: Input<'_>) {
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
                self.wanted(at, moment, outcome);
            }
        }
    }

    /// Gives an order to a device. What the announcer decides if the device does not take it comes back.
    fn order(&mut self, at: usize, order: Order) -> Option<Decided> {
        if let Order::Sound(_) = order {
            // A sound is never the only sign of anything, so one that is not heard is not missed.
            let _ = self.devices.sounds.as_ref().map(|sounds| sounds.tell(order));
            return None;
        }
        let now = self.now();
        let is_spoken_otherwise = self.devices.is_spoken_otherwise(at);
        let channel = self.devices.channels.get_mut(at)?;
        if let (Order::Say(utterance), true) = (&order, is_spoken_otherwise) {
            // Nobody sees it, and the device that speaks it says when it was heard.
            let mut decided =
                channel.announcer.handle(now, Input::Device(Report::Began(utterance.id)));
            let ended = channel.announcer.handle(now, Input::Device(Report::Shown(utterance.id)));
            decided.orders.extend(ended.orders);
            decided.outcomes.extend(ended.outcomes);
            return Some(decided);
        }
        let is_taken = channel.device.tell(order).is_ok();
        let was_stuck = std::mem::replace(&mut channel.is_stuck, !is_taken);
        if is_taken || was_stuck {
            return None;
        }
        let why = Report::Trouble(english::hubs::TAKES_NO_WORDS.to_owned());
        Some(channel.announcer.handle(now, Input::Device(why)))
    }

    /// What an announcer wants of us.
    fn wanted(&mut self, at: usize, moment: Duration, outcome: Wanted) {
        match outcome {
            Wanted::Presenting(number) => {
                if let Some(waiting) = self.open.get_mut(number) {
                    waiting.told.begin(moment);
                }
            }
            Wanted::Presented(number) => self.presented(at, number),
            Wanted::PresentedWhole(number) => self.presented_whole(at, moment, number),
            Wanted::Chosen { number, answer } => self.answer(number, meaning_of(answer)),
            Wanted::MoreTime(number) => self.answer(number, Meaning::Extend(USUAL_SECONDS)),
            Wanted::Trouble(why) => {
                if self.is_paced(at) && !self.has_paced() {
                    self.paced_until = self.note_moment();
                }
                self.tell_others(at, &why);
                // Nobody waits for a device that does not work.
                let numbers: Vec<AskNumber> = self.open.all().map(|(number, _)| number).collect();
                for number in numbers {
                    self.start_clock(number);
                }
                self.tell_lines_again(at);
            }
            Wanted::Works => self.tell_others(at, english::hubs::WORKS_AGAIN),
            // The device keeps the person's pace; the hubs tell everything when it happens (ruling 30).
            Wanted::Pace(_) => {}
        }
    }

    /// The name under which the person hears of the agent of an event.
    pub(super) fn agent_label(&self, hub: HubNumber, event: &Event) -> String {
        let announcer = self.devices.channels.first().map(|it| &it.announcer);
        let label = announcer.and_then(|it| it.agent_label(hub, &event.envelope.session_id));
        label.unwrap_or_else(|| agent_name(event))
    }

    /// The agents that the person hears of.
    pub(super) fn agents(&self) -> Vec<KnownAgent> {
        self.devices.channels.first().map(|it| it.announcer.agents()).unwrap_or_default()
    }

    /// Whether any device goes at a pace of its own.
    pub(super) fn has_pace(&self) -> bool {
        let mut devices = self.devices.channels.iter().map(|it| it.device.name());
        devices.any(|name| name == speech::NAME || name == braille::NAME)
    }

    /// Lines that were silent for the screen reader of the desktop tell what waits, now that it does not work.
    fn tell_lines_again(&mut self, at: usize) {
        let Some(lines) = self.devices.silent_lines(at) else { return };
        let numbers: Vec<AskNumber> = self.open.all().map(|(number, _)| number).collect();
        for number in numbers {
            self.tell(lines, Input::Wish(Wish::Question(number)));
        }
    }

    /// One device has something to say that only the others can tell.
    fn tell_others(&mut self, at: usize, what: &str) {
        let Some(channel) = self.devices.channels.get(at) else { return };
        let text = english::hubs::about_device(channel.device.name(), what);
        if self.devices.channels.len() == 1 {
            console::say(&text);
        }
        for other in (0..self.devices.channels.len()).filter(|other| *other != at) {
            self.tell(other, Input::Notice(&text));
        }
    }

    /// A device told the question whole.
    fn presented(&mut self, at: usize, number: AskNumber) {
        let Some(device) = self.devices.channels.get(at).map(|it| it.device.name()) else { return };
        if let Some(waiting) = self.open.get_mut(number) {
            waiting.told.present(device);
        }
        self.start_clock(number);
    }

    /// The time of a question counts from when the slowest device has told it, if the hub counts it so.
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
            // A hub that does not hear it counts from when it asked; there is nothing else to do.
            let _ = ask.presented().await;
        });
    }

    /// A device told the question to its end. If that is enough for an answer here, it is for `aaep answer` too.
    fn presented_whole(&mut self, at: usize, moment: Duration, number: AskNumber) {
        let Some(device) = self.devices.channels.get(at).map(|it| it.device.name()) else { return };
        let has_paced = self.has_paced();
        let Some(waiting) = self.open.get_mut(number) else { return };
        waiting.told.end(device, moment);
        let Some(known) =
            Asked::of(waiting.ask.event()).filter(|_| waiting.told.is_whole_at(moment, has_paced))
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

    /// Whether a device works that takes its time, so that what stands in the lines may not have been read yet.
    fn has_paced(&self) -> bool {
        let mut channels = (0..).zip(&self.devices.channels);
        channels.any(|(at, it)| self.is_paced(at) && it.announcer.is_working())
    }

    /// Whether one works, or worked at this moment.
    pub(super) fn has_paced_at(&self, moment: Duration) -> bool {
        moment < self.paced_until || self.has_paced()
    }

    fn is_paced(&self, at: usize) -> bool {
        self.devices.channels.get(at).is_some_and(|it| it.device.name() != lines::NAME)
    }

    pub(super) fn report(&mut self, told: Told) {
        let at = self.devices.channels.iter().position(|it| it.device.name() == told.device);
        match (at, told.report) {
            (Some(at), report) => {
                // Lines note a moment themselves, between the question and the prompt.
                let is_noted = told.device == lines::NAME;
                let moment = if is_noted { self.moment(told.at) } else { self.note_moment() };
                self.tell_of(at, moment, Input::Device(report));
            }
            // The device for sounds has nobody who decides for it.
            (None, Report::Trouble(why) | Report::Notice(why)) => {
                self.tell_all(&Input::Notice(&english::hubs::about_device(told.device, &why)));
            }
            (None, _) => {}
        }
    }

    /// The person answers, or wants something of the time of a question.
    pub(super) fn answer(&mut self, number: AskNumber, meaning: Meaning) {
        let Some(waiting) = self.open.get_mut(number) else { return };
        let is_time = matches!(meaning, Meaning::Extend(_) | Meaning::Pause | Meaning::Resume);
        waiting.is_answered |= !is_time;
        if is_time {
            let wanted = match meaning {
                Meaning::Extend(seconds) => Some(Duration::from_secs(seconds)),
                _ => None,
            };
            self.timed = Some((number, wanted));
        }
        let (ask, came) = (waiting.ask.clone(), self.came.0.clone());
        tokio::spawn(async move {
            let sent = match meaning {
                Meaning::Accept => ask.accept().await,
                Meaning::Reject => ask.reject().await,
                Meaning::Respond(response) => ask.answer(response).await,
                Meaning::Extend(seconds) => ask.extend(seconds).await,
                Meaning::Pause => ask.pause().await,
                Meaning::Resume => ask.resume().await,
            };
            let Err(error) = sent else { return };
            let came_of_it = if is_time {
                Came::NotTimed(number, error)
            } else {
                Came::NotAnswered(number, error)
            };
            // If nobody listens any more, nobody needs to know.
            let _ = came.send(came_of_it).await;
        });
    }
}

fn meaning_of(answer: Answer) -> Meaning {
    match answer {
        Answer::Decision(aaep::event::human::Decision::Accept) => Meaning::Accept,
        Answer::Decision(aaep::event::human::Decision::Reject) => Meaning::Reject,
        Answer::Response(response) => Meaning::Respond(response),
    }
}
