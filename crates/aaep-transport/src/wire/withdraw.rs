//! Gives back the backlog of a full socket, so that a critical event can be sent first.
//!
//! The caller decides the new order. The wire only drops what it has not begun, reports after which event, and
//! drops what the caller sent before it knew.

use std::sync::Arc;

use super::WireReport;
use super::backlog::BacklogItem;
use super::connection::{WireConnection, WithdrawalState};
use super::event_loop::EventLoop;
use crate::packet::WirePacket;

impl EventLoop {
    pub(super) fn deliver(&mut self, index: usize, packet: &Arc<WirePacket>) {
        if self.connections[index].withdrawal == WithdrawalState::Unacknowledged {
            return;
        }
        self.push(index, BacklogItem::Packet(Arc::clone(packet)));
        let must_overtake =
            |it: &WireConnection| it.is_blocked && it.backlog.has_critical_behind_others();
        if packet.is_critical() && self.connections.get(index).is_some_and(must_overtake) {
            self.withdraw(index);
        }
    }

    /// Gives back the events that wait for a full socket and were not begun.
    pub(super) fn withdraw(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        let can_be = connection.is_blocked && connection.withdrawal == WithdrawalState::Possible;
        let Some(subscriber) = connection.subscriber.filter(|_| can_be && connection.is_open())
        else {
            return;
        };
        let Some(last) = connection.backlog.withdraw(connection.protocol) else { return };
        connection.withdrawal = WithdrawalState::Unacknowledged;
        let (connection, last_event_id) = (connection.key, last.event_id().into());
        self.report(WireReport::Withdrawn { connection, subscriber, last_event_id });
    }

    /// Records that the caller knows what was given back: events delivered from now on are sent.
    pub(super) fn go_on(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if connection.withdrawal != WithdrawalState::Unacknowledged {
            return;
        }
        connection.withdrawal = WithdrawalState::Possible;
        let (key, is_free) = (connection.key, !connection.is_blocked && connection.is_open());
        if let Some(subscriber) = connection.subscriber.filter(|_| is_free) {
            self.report(WireReport::Unblocked { connection: key, subscriber });
        }
    }
}
