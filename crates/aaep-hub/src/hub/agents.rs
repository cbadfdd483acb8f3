//! Agents on their own sockets: events come in; outcomes and instructions go out.

use std::sync::Arc;

use aaep::{Message, Mode, Object, ReplyToken};
use aaep_engine::PrincipalNumber;
use aaep_engine::terms::Door;
use aaep_transport::WirePacket;
use aaep_transport::wire::{Command, ConnectionKey};
use serde::Serialize;
use serde_json::{Value, json};

use super::keeper::DeferredEffect;
use super::own_ids;
use super::owner::EngineOwner;
use super::publish::{self, EventDraft, Published};
use super::refused::Refused;
use super::settlement::Settlement;
use super::violations;
use crate::access::Principal;

impl EngineOwner {
    /// Handles a message from an agent's socket.
    pub(super) fn handle_agent_message(
        &mut self,
        connection: ConnectionKey,
        message: Result<Object, String>,
    ) {
        let Some(known) = self.connections.get(&connection) else { return };
        let (principal, number) = (Arc::clone(&known.principal), known.number);
        let mut object = match message {
            Ok(object) => object,
            Err(why) => {
                self.tell_agent(connection, &refused_frame("not_json", &why));
                return;
            }
        };
        let kind = object.get("type").and_then(Value::as_str);
        if kind == Some("subscription.request") {
            // The agent wire serves no subscribers (ruling 12).
            let rejected = self.reject_at(Door::TransportUnavailable);
            self.tell_agent(connection, &rejected);
            return;
        }
        if matches!(kind, Some("agentvoice:agent.hello" | "agentvoice:ask.withdraw")) {
            let named = object.get("reply_token").and_then(Value::as_str);
            if let Some(token) = named.and_then(|text| own_ids::token(&principal.id, text)) {
                object.insert("reply_token".to_owned(), token.as_str().into());
            }
            match aaep::read_object(&object, Mode::Strict).into_result() {
                Ok(message) => self.handle_agent_control(connection, &principal, number, message),
                Err(wrong) => {
                    let mut frame = refused_frame("not_valid", "The message is not valid.");
                    frame["violations"] = violations::to_json(&wrong);
                    self.tell_agent(connection, &frame);
                }
            }
            return;
        }
        let now_us = self.clock.now().monotonic_us;
        let outcome = match self.guard.publish(&principal.id, 1, now_us) {
            Ok(()) => self.publish(&principal, number, EventDraft::new(&principal, object)),
            Err(limit) => Err(Refused::Limit(limit)),
        };
        match outcome {
            Ok(published) => {
                if let Some(known) = self.connections.get_mut(&connection) {
                    known.speak_in(&published.session_id);
                }
                self.tell_agent(connection, &published_frame(&published));
                if let Some(token) = published.reply_token {
                    self.answer_on(connection, number, token);
                }
            }
            Err(refused) => self.tell_agent(connection, &refusal_frame(&refused)),
        }
    }

    fn handle_agent_control(
        &mut self,
        connection: ConnectionKey,
        principal: &Principal,
        number: PrincipalNumber,
        message: Message,
    ) {
        let refused = match message {
            Message::AgentHello(hello) => {
                let declared = self.declare(
                    principal,
                    number,
                    &hello.agent_id,
                    hello.accepts,
                    Some(connection),
                );
                let why = "You may not speak under this agent_id. Choose another one.";
                (!declared).then_some(("name_taken", why))
            }
            Message::AskWithdraw(wish) => {
                let withdrawn = self.withdraw(number, &wish.reply_token);
                (!withdrawn)
                    .then_some(("no_such_ask", "No question of yours with this token is open."))
            }
            _ => None,
        };
        if let Some((error, why)) = refused {
            self.tell_agent(connection, &refused_frame(error, why));
        }
    }

    /// Sends the outcome of an ask to this socket: now if it is settled, otherwise when it is.
    fn answer_on(
        &mut self,
        connection: ConnectionKey,
        principal: PrincipalNumber,
        token: ReplyToken,
    ) {
        if let Some(ask) = self.asks.get_mut(&token) {
            if ask.asked.principal == principal {
                ask.connection = Some(connection);
            }
            return;
        }
        // The ask is settled, and by the time this effect runs, that is stored.
        let (reader, wire) = (self.reader.clone(), self.agent_wire.clone());
        self.batch.effects.push(DeferredEffect::Answer(Box::new(move || {
            if let Ok(Some((_, settlement))) = publish::settled(&reader, principal, &token) {
                let packet = packet(&resolved(&settlement));
                let _ = wire.send(vec![Command::Send { connection, packet }]);
            }
        })));
    }

    pub(super) fn tell_agent(&mut self, connection: ConnectionKey, message: &impl Serialize) {
        self.tell_agent_wire(Command::Send { connection, packet: packet(message) });
    }

    pub(super) fn tell_agent_wire(&mut self, command: Command) {
        self.batch.effects.push(DeferredEffect::AgentWire(command));
    }
}

fn packet(message: &impl Serialize) -> Arc<WirePacket> {
    Arc::new(WirePacket::new("", serde_json::to_vec(message).unwrap_or_default()))
}

/// The frame that tells an agent on its socket how an ask was settled.
pub(super) fn resolved(settlement: &Settlement) -> Value {
    let mut frame = serde_json::to_value(settlement).unwrap_or_default();
    frame["type"] = "agentvoice:resolved".into();
    frame
}

fn published_frame(published: &Published) -> Value {
    let mut frame = serde_json::to_value(published).unwrap_or_default();
    frame["type"] = "agentvoice:published".into();
    frame
}

fn refused_frame(error: &str, message: &str) -> Value {
    json!({ "type": "agentvoice:refused", "error": error, "message": message })
}

fn refusal_frame(refused: &Refused) -> Value {
    let mut frame = refused_frame(refused.code(), &refused.to_string());
    match refused {
        Refused::NotValid { violations } => frame["violations"] = violations::to_json(violations),
        Refused::Rules { event_id, .. } | Refused::EventIdUsed { event_id } => {
            frame["event_id"] = event_id.as_str().into();
        }
        _ => {}
    }
    frame
}
