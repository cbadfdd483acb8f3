//! What goes to the producer: one message at a time, each at most once.

use std::future::Future;
use std::pin::Pin;

use aaep::ReplyToken;
use aaep::extension::{
    AgentPrompt, AskExtend, AskPause, AskPresented, AskResume, SessionCancel, SessionSteer,
};
use aaep_engine::subscriber::CannotReply;
use aaep_transport::link::LinkEnd;
use serde::Serialize;
use tokio::time::timeout;

use super::line::Line;
use super::{SEND_TIMEOUT, Task};
use crate::command::{Answer, Command, Done, Instruction, TimeWish};
use crate::dial::Dial;
use crate::error::SayError;
use crate::news::Ended;

/// The line takes nothing any more.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stuck;

/// A message that the line has not taken yet.
pub(super) struct Sending {
    pub(super) future: Pin<Box<dyn Future<Output = Result<bool, Stuck>> + Send>>,
    done: Option<Done>,
}

impl<D: Dial> Task<D> {
    /// The program wants something.
    pub(super) fn said(&mut self, command: Command) -> Result<(), Ended> {
        match command {
            Command::Reply { token, answer, done } => self.reply(&token, *answer, done),
            Command::Time { token, wish, done } => self.change_time(&token, wish, done),
            Command::Instruct { instruction, done } => self.instruct(instruction, done),
            Command::Renegotiate { capabilities, done } => {
                if !self.line.holds() {
                    let _ = done.send(Err(SayError::LineDown));
                    return Ok(());
                }
                let wanted = self.wishes.capabilities.overlaid_with(&capabilities);
                match self.rules.renegotiate(*capabilities) {
                    Ok(message) => {
                        // A new line asks for what was wished last.
                        self.wishes.capabilities = wanted;
                        self.send(&message, Some(done));
                    }
                    Err(why) => {
                        let _ = done.send(Err(SayError::CannotAsk(why)));
                    }
                }
            }
            Command::Close { reason, done } => {
                self.goodbye = Some((reason, done));
                return Err(Ended::Closed);
            }
        }
        Ok(())
    }

    /// The person answers. Without a line the answer waits, and is not made yet.
    fn reply(&mut self, token: &ReplyToken, answer: Answer, done: Done) {
        if !self.line.holds() {
            if let Err((done, why)) = self.asks.wait(token, answer, done) {
                let _ = done.send(Err(SayError::CannotReply(why)));
            }
            return;
        }
        if done.is_closed() {
            // Nobody waits for it any more: it was taken back.
            return;
        }
        match self.make_reply(token, answer) {
            Ok(text) => {
                self.asks.answered(token);
                self.send_text(text, Some(done));
            }
            Err(why) => {
                let _ = done.send(Err(SayError::CannotReply(why)));
            }
        }
    }

    fn make_reply(&mut self, token: &ReplyToken, answer: Answer) -> Result<String, CannotReply> {
        let now = self.now();
        match answer {
            Answer::Confirmation(decision, details) => {
                self.rules.confirm(now, token, decision, details).map(|it| json(&it))
            }
            Answer::Clarification(response, details) => {
                self.rules.clarify(now, token, response, details).map(|it| json(&it))
            }
        }
    }

    /// Sends the next answer that waited for the line.
    pub(super) fn send_waiting(&mut self) {
        while self.sending.is_none() && self.line.holds() {
            let Some((token, answer, done)) = self.asks.next_waiting() else { return };
            self.reply(&token, answer, done);
        }
    }

    fn change_time(&mut self, token: &ReplyToken, wish: TimeWish, done: Done) {
        let is_open = self.rules.open_asks().any(|ask| ask.reply_token == *token);
        let subscription_id = self.rules.subscription_id().cloned();
        let (true, true, Some(subscription_id)) = (is_open, self.line.holds(), subscription_id)
        else {
            let _ = done.send(Err(if is_open {
                SayError::LineDown
            } else {
                SayError::CannotReply(CannotReply::UnknownAsk)
            }));
            return;
        };
        if self.wishes.without_handshake {
            // When the person heard it matters to nobody there.
            let is_presented = matches!(wish, TimeWish::Presented);
            let _ = done.send(if is_presented { Ok(()) } else { Err(SayError::OnlyAnswers) });
            return;
        }
        let (reply_token, other) = (token.clone(), aaep::Object::new());
        let text = match wish {
            TimeWish::Presented => json(&AskPresented { reply_token, subscription_id, other }),
            TimeWish::Extend { by_seconds } => {
                json(&AskExtend { reply_token, subscription_id, by_seconds, other })
            }
            TimeWish::Pause => json(&AskPause { reply_token, subscription_id, other }),
            TimeWish::Resume => json(&AskResume { reply_token, subscription_id, other }),
        };
        self.send_text(text, Some(done));
    }

    fn instruct(&mut self, instruction: Instruction, done: Done) {
        let subscription_id = self.rules.subscription_id().cloned();
        let (true, Some(subscription_id)) = (self.line.holds(), subscription_id) else {
            let _ = done.send(Err(SayError::LineDown));
            return;
        };
        let other = aaep::Object::new();
        let text = match instruction {
            Instruction::Prompt { agent_id, text } => {
                json(&AgentPrompt { subscription_id, agent_id, text, other })
            }
            Instruction::Cancel { session_id } => {
                json(&SessionCancel { subscription_id, session_id, reason: None, other })
            }
            Instruction::Steer { session_id, text } => {
                json(&SessionSteer { subscription_id, session_id, text, other })
            }
        };
        self.send_text(text, Some(done));
    }

    pub(super) fn send(&mut self, message: &impl Serialize, done: Option<Done>) {
        self.send_text(json(message), done);
    }

    fn send_text(&mut self, text: String, done: Option<Done>) {
        let Line::Up(up) = &self.line else { return };
        let sender = up.sender.clone();
        let future = Box::pin(async move {
            let sent = timeout(SEND_TIMEOUT, sender.send(text)).await;
            sent.map_err(|_| Stuck).map(|sent| sent.is_ok())
        });
        self.sending = Some(Sending { future, done });
    }

    /// The line took a message, or is gone, or takes nothing any more.
    pub(super) fn sent(&mut self, result: Result<bool, Stuck>) -> Result<(), Ended> {
        let Ok(is_taken) = result else {
            let why = LinkEnd::Cut("the producer takes nothing any more".to_owned());
            return self.line_ended(&why);
        };
        if let Some(done) = self.sending.take().and_then(|sending| sending.done) {
            let _ = done.send(if is_taken { Ok(()) } else { Err(SayError::LineBroke) });
        }
        // That the line is gone is heard on it, with the reason.
        if is_taken {
            self.send_waiting();
        }
        Ok(())
    }

    /// The line broke: nobody knows whether what was being sent has arrived.
    pub(super) fn stop_sending(&mut self) {
        if let Some(done) = self.sending.take().and_then(|sending| sending.done) {
            let _ = done.send(Err(SayError::LineBroke));
        }
    }
}

pub(super) fn json(message: &impl Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}
