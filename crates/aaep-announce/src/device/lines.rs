//! Plain lines, for any terminal, a pipe or a log.
//!
//! Every line begins with a label of ours, and everything after it is escaped, so that an agent's text cannot imitate
//! another line or control the terminal. Nothing is redrawn, animated or coloured. A prompt is at the end without a
//! line break, so that a screen reader reads it when it appears.

use std::io::{self, Write};
use std::sync::mpsc::Sender;
use std::thread;

use aaep::printable;
use serde_json::json;

use super::{Device, Reporter, TimedReport};
use crate::choices::choice_letters;
use crate::english::devices;
use crate::utterance::{DeviceReport, Order, Utterance, UtteranceId, UtteranceKind, Weight};

/// The name of this device.
pub const NAME: &str = "lines";
/// The longest text of a notification, in characters.
const MAX_NOTIFICATION: usize = 200;

/// How lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineOptions {
    /// One JSON object per utterance, for programs.
    pub is_json: bool,
    /// The first line says that these are plain lines, which people who set `ACCESSIBLE` expect.
    pub greets: bool,
    /// The terminal's bell rings for questions, errors and ends.
    pub rings: bool,
    /// The terminal shows a notification for them.
    pub notifies: Option<Notification>,
}

/// How a terminal is asked to show a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notification {
    /// With operating system command 9.
    Osc9,
    /// With operating system command 777.
    Osc777,
}

/// Writes lines.
#[derive(Debug)]
pub struct Lines<W> {
    to: W,
    options: LineOptions,
    /// The question whose prompt is on the unfinished last line.
    prompt: Option<UtteranceId>,
    is_in_trouble: bool,
}

/// Starts the device on its own thread. It ends when its handle is dropped.
pub fn start(
    to: impl Write + Send + 'static,
    options: LineOptions,
    reports: Sender<TimedReport>,
) -> io::Result<Device> {
    let (device, orders) = Device::new(NAME);
    let reporter = Reporter::new(NAME, reports);
    thread::Builder::new().name(NAME.to_owned()).spawn(move || {
        let mut lines = Lines::new(to, options);
        lines.begin().into_iter().for_each(|it| {
            reporter.report(it);
        });
        for order in orders {
            let mut is_wanted = true;
            lines.carry_out(&order, |report| is_wanted &= reporter.report(report));
            if !is_wanted {
                return;
            }
        }
        lines.end();
    })?;
    Ok(device)
}

impl<W: Write> Lines<W> {
    /// Writes lines to this output.
    pub fn new(to: W, options: LineOptions) -> Self {
        Lines { to, options, prompt: None, is_in_trouble: false }
    }

    /// Writes the first line, if it is wanted.
    pub fn begin(&mut self) -> Vec<DeviceReport> {
        let text = if self.options.greets && !self.options.is_json {
            format!("{}: {}\n", devices::label(UtteranceKind::Notice, false), devices::PLAIN_LINES)
        } else {
            String::new()
        };
        match self.write(&text) {
            Ok(()) => vec![DeviceReport::Works],
            Err(error) => self.trouble(&error),
        }
    }

    /// Carries out an order and reports the result. Lines take no time: a written utterance has ended. The prompt is
    /// written after the reports, so that the question counts as presented before anyone can answer the prompt.
    pub fn carry_out(&mut self, order: &Order, mut report: impl FnMut(DeviceReport)) {
        let ((text, prompt), said) = match order {
            Order::Say(utterance) if self.options.is_json => {
                ((json_line(utterance), "\n".to_owned()), Some(utterance.id))
            }
            Order::Say(utterance) => (self.lines_of(utterance), Some(utterance.id)),
            Order::Withdraw(id) if self.options.is_json => {
                ((format!("{}\n", json!({ "withdraw": id })), String::new()), None)
            }
            Order::Withdraw(id) if self.prompt == Some(*id) => {
                ((self.end_prompt().to_owned(), String::new()), None)
            }
            // The person reads lines at their own pace.
            Order::Withdraw(_) | Order::Stop | Order::Sound(_) | Order::Pace(_) => return,
        };
        // A part may already be on the screen although the rest cannot be written yet.
        if let Some(id) = said.filter(|_| !self.is_in_trouble) {
            report(DeviceReport::Began(id));
        }
        let mut written = self.write(&text);
        match (&written, said) {
            (Ok(()), said) => {
                let was_in_trouble = std::mem::take(&mut self.is_in_trouble);
                if was_in_trouble {
                    report(DeviceReport::Works);
                }
                if let Some(id) = said {
                    if was_in_trouble {
                        report(DeviceReport::Began(id));
                    }
                    report(DeviceReport::Ended(id));
                }
                written = self.write(&prompt);
            }
            (Err(_), Some(id)) => report(DeviceReport::Cut(id)),
            (Err(_), None) => {}
        }
        if let Err(error) = written {
            self.trouble(&error).into_iter().for_each(report);
        }
    }

    /// Ends the line that has a prompt.
    pub fn end(&mut self) {
        let text = self.end_prompt();
        // Nobody is left to receive a failure.
        let _ = self.write(text);
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.to.write_all(text.as_bytes())?;
        self.to.flush()
    }

    fn trouble(&mut self, error: &io::Error) -> Vec<DeviceReport> {
        if std::mem::replace(&mut self.is_in_trouble, true) {
            return Vec::new();
        }
        vec![DeviceReport::Trouble(devices::lines_cannot_be_written(error))]
    }

    fn end_prompt(&mut self) -> &'static str {
        if self.prompt.take().is_some() { "\n" } else { "" }
    }

    /// The lines for an utterance, and the prompt after them.
    fn lines_of(&mut self, utterance: &Utterance) -> (String, String) {
        let mut text = self.end_prompt().to_owned();
        if matches!(
            utterance.kind,
            UtteranceKind::Question | UtteranceKind::Error | UtteranceKind::Done
        ) {
            text.push_str(&self.signals(utterance));
        }
        text.extend([label(utterance), ": ", &*printable(&utterance.words), "\n"]);
        if utterance.choices.is_empty() {
            return (text, String::new());
        }
        let is_permission = utterance.choices.iter().any(|it| it.is_consent);
        let prompt = if is_permission {
            // A digit is too easily typed by accident to allow anything.
            let words = utterance.choices.iter().rev().map(|it| it.words.to_lowercase());
            let words: Vec<String> = words.map(|it| printable(&it).into_owned()).collect();
            devices::answer_with(&words)
        } else {
            let letters = choice_letters(utterance.choices.iter().map(|it| it.words.as_str()));
            for (at, choice) in utterance.choices.iter().enumerate() {
                let letter = letters.as_ref().and_then(|it| it.get(at));
                let letter = letter.map(|it| format!("{it}. ")).unwrap_or_default();
                text.extend(["  ", &letter, &*printable(&choice.words), "\n"]);
            }
            match letters.as_deref() {
                None | Some([]) => devices::ANSWER_WITH_ONE.to_owned(),
                Some(few @ ([_] | [_, _])) => devices::answer_with(few),
                Some([first, .., last]) => devices::answer_from_to(first, last),
            }
        };
        self.prompt = Some(utterance.id);
        (text, prompt)
    }

    fn signals(&self, utterance: &Utterance) -> String {
        let words = printable(&utterance.words);
        // A part of a question could be mistaken for all of it, and a semicolon would end the notification.
        let is_whole = words.chars().count() <= MAX_NOTIFICATION && !words.contains(';');
        let words = match utterance.kind {
            _ if is_whole => words.into_owned(),
            UtteranceKind::Question => devices::QUESTION_IN_TERMINAL.to_owned(),
            _ => {
                let words: String = utterance.words.chars().take(MAX_NOTIFICATION).collect();
                printable(&words).replace(';', ",")
            }
        };
        let mut signals = match self.options.notifies {
            Some(Notification::Osc9) => format!("\x1b]9;{words}\x07"),
            Some(Notification::Osc777) => {
                format!("\x1b]777;notify;{};{words}\x07", label(utterance))
            }
            None => String::new(),
        };
        if self.options.rings {
            signals.push('\x07');
        }
        signals
    }
}

/// The label at the beginning of a line.
fn label(utterance: &Utterance) -> &'static str {
    devices::label(utterance.kind, utterance.choices.iter().any(|it| it.is_consent))
}

fn json_line(utterance: &Utterance) -> String {
    let weight = match utterance.weight {
        Weight::Progress => "progress",
        Weight::Background => "background",
        Weight::Normal => "normal",
        Weight::Critical => "critical",
    };
    let choices: Vec<_> = utterance
        .choices
        .iter()
        .map(|it| json!({ "words": printable(&it.words), "is_consent": it.is_consent }))
        .collect();
    let parts: Vec<_> = utterance
        .language_parts()
        .map(|it| json!({ "words": printable(&it.words), "language": it.language }))
        .collect();
    let object = json!({
        "id": utterance.id,
        "kind": utterance.kind.word(),
        "weight": weight,
        "words": printable(&utterance.words),
        "language": utterance.language.as_ref().map(aaep::LanguageTag::as_str),
        "parts": parts,
        "is_right_to_left": utterance.is_right_to_left,
        "choices": choices,
    });
    object.to_string()
}
