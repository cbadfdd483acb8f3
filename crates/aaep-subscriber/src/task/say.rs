//! Messages to the producer: one at a time, each sent at most once.

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

use super::link::LinkState;
use super::{SEND_TIMEOUT, SubscriptionTask};
use crate::command::{DoneSender, Instruction, KitAnswer, TaskCommand, TimeRequest};
use crate::dial::Dial;
use crate::error::SayError;
use crate::news::Ended;

/// The link accepts nothing any more.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkStuck;

/// A message that the link has not accepted yet.
pub(super) struct PendingSend {
    pub(super) future: Pin<Box<dyn Future<Output = Result<bool, LinkStuck>> + Send>>,
    done: Option<DoneSender>,
}

impl<D: Dial> SubscriptionTask<D> {
    /// Carries out a command of the program.
    pub(super) fn said(&mut self, command: TaskCommand) -> Result<(), Ended> {
        match command {
            TaskCommand::Reply { token, answer, done } => self.reply(&token, *answer, done),
            TaskCommand::Time { token, request, done } => self.change_time(&token, request, done),
            TaskCommand::Instruct { instruction, done } => self.instruct(instruction, done),
            TaskCommand::Renegotiate { capabilities, done } => {
                if !self.link.holds() {
                    let _ = done.send(Err(SayError::LineDown));
                    return Ok(());
                }
                let wanted = self.wishes.capabilities.overlaid_with(&capabilities);
                match self.rules.renegotiate(*capabilities) {
                    Ok(message) => {
                        // A new link requests the latest capabilities.
                        self.wishes.capabilities = wanted;
                        self.send(&message, Some(done));
                    }
                    Err(why) => {
                        let _ = done.send(Err(SayError::CannotAsk(why)));
                    }
                }
            }
            TaskCommand::Close { reason, done } => {
                self.goodbye = Some((reason, done));
                return Err(Ended::Closed);
            }
        }
        Ok(())
    }

    /// Sends the person's answer. Without a link the answer is kept, and the reply is not made yet.
    fn reply(&mut self, token: &ReplyToken, answer: KitAnswer, done: DoneSender) {
        if !self.link.holds() {
            if let Err((done, why)) = self.asks.wait(token, answer, done) {
                let _ = done.send(Err(SayError::CannotReply(why)));
            }
            return;
        }
        if done.is_closed() {
            // The future was dropped: the answer was taken back.
            return;
        }
        let before = self.rules.open_asks().find(|ask| ask.reply_token == *token).cloned();
        match self.make_reply(token, answer) {
            Ok(text) => {
                self.asks.answered(token, before);
                self.send_text(text, Some(done));
            }
            Err(why) => {
                let _ = done.send(Err(SayError::CannotReply(why)));
            }
        }
    }

    fn make_reply(&mut self, token: &ReplyToken, answer: KitAnswer) -> Result<String, CannotReply> {
        let now = self.now();
        match answer {
            KitAnswer::Confirmation(decision, details) => {
                self.rules.confirm(now, token, decision, details).map(|it| json(&it))
            }
            KitAnswer::Clarification(response, details) => {
                self.rules.clarify(now, token, response, details).map(|it| json(&it))
            }
        }
    }

    /// Sends the answers that waited for the link.
    pub(super) fn send_waiting(&mut self) {
        while self.sending.is_none() && self.link.holds() {
            let Some((token, answer, done)) = self.asks.next_waiting() else { return };
            self.reply(&token, answer, done);
        }
    }

    fn change_time(&mut self, token: &ReplyToken, request: TimeRequest, done: DoneSender) {
        let is_open = self.rules.open_asks().any(|ask| ask.reply_token == *token);
        let subscription_id = self.rules.subscription_id().cloned();
        let (true, true, Some(subscription_id)) = (is_open, self.link.holds(), subscription_id)
        else {
            let _ = done.send(Err(if is_open {
                SayError::LineDown
            } else {
                SayError::CannotReply(CannotReply::UnknownAsk)
            }));
            return;
        };
        if self.wishes.without_handshake {
            // Such a producer does not need to know when the person heard the ask.
            let is_presented = matches!(request, TimeRequest::Presented);
            let _ = done.send(if is_presented { Ok(()) } else { Err(SayError::OnlyAnswers) });
            return;
        }
        let (reply_token, other) = (token.clone(), aaep::Object::new());
        let text = match request {
            TimeRequest::Presented => json(&AskPresented { reply_token, subscription_id, other }),
            TimeRequest::Extend { by_seconds } => {
                json(&AskExtend { reply_token, subscription_id, by_seconds, other })
            }
            TimeRequest::Pause => json(&AskPause { reply_token, subscription_id, other }),
            TimeRequest::Resume => json(&AskResume { reply_token, subscription_id, other }),
        };
        self.send_text(text, Some(done));
    }

    fn instruct(&mut self, instruction: Instruction, done: DoneSender) {
        let subscription_id = self.rules.subscription_id().cloned();
        let (true, Some(subscription_id)) = (self.link.holds(), subscription_id) else {
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

    pub(super) fn send(&mut self, message: &impl Serialize, done: Option<DoneSender>) {
        self.send_text(json(message), done);
    }

    fn send_text(&mut self, text: String, done: Option<DoneSender>) {
        let LinkState::Up(up) = &self.link else { return };
        let sender = up.sender.clone();
        let future = Box::pin(async move {
            let sent = timeout(SEND_TIMEOUT, sender.send(text)).await;
            sent.map_err(|_| LinkStuck).map(|sent| sent.is_ok())
        });
        self.sending = Some(PendingSend { future, done });
    }

    /// Handles the result of sending: the link took the message, is gone, or is stuck.
    pub(super) fn sent(&mut self, result: Result<bool, LinkStuck>) -> Result<(), Ended> {
        let Ok(is_taken) = result else {
            let why = LinkEnd::Cut("the producer takes nothing any more".to_owned());
            return self.link_ended(&why);
        };
        if let Some(done) = self.sending.take().and_then(|sending| sending.done) {
            let _ = done.send(if is_taken { Ok(()) } else { Err(SayError::LineBroke) });
        }
        // If the link is gone, receiving from it reports that, with the reason.
        if is_taken {
            self.send_waiting();
        }
        Ok(())
    }

    /// Gives up the current message when the link breaks: it is not known whether it arrived.
    pub(super) fn stop_sending(&mut self) {
        if let Some(done) = self.sending.take().and_then(|sending| sending.done) {
            let _ = done.send(Err(SayError::LineBroke));
        }
    }
}

pub(super) fn json(message: &impl Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}
