//! Giving back what waits for a full socket, so that something critical can go first.
//!
//! The caller knows the order of things and decides it anew; the wire only drops what it has not begun, says after
//! which event, and drops what is still on its way from before the caller knew.

use std::sync::Arc;

use super::Report;
use super::backlog::Item;
use super::connection::{Connection, Withdrawal};
use super::event_loop::EventLoop;
use crate::packet::Packet;

impl EventLoop {
    pub(super) fn deliver(&mut self, place: usize, packet: &Arc<Packet>) {
        if self.connections[place].withdrawal == Withdrawal::Untold {
            return;
        }
        self.push(place, Item::Packet(Arc::clone(packet)));
        let must_overtake =
            |it: &Connection| it.is_blocked && it.backlog.has_critical_behind_others();
        if packet.is_critical() && self.connections.get(place).is_some_and(must_overtake) {
            self.withdraw(place);
        }
    }

    /// Gives back what waits for a full socket and was not begun.
    pub(super) fn withdraw(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        let can_be = connection.is_blocked && connection.withdrawal == Withdrawal::Possible;
        let Some(subscriber) = connection.subscriber.filter(|_| can_be && connection.is_open())
        else {
            return;
        };
        let Some(last) = connection.backlog.withdraw(connection.protocol) else { return };
        connection.withdrawal = Withdrawal::Untold;
        let (connection, last_event_id) = (connection.key, last.event_id().into());
        self.report(Report::Withdrawn { connection, subscriber, last_event_id });
    }

    /// What was given back is known: what is delivered from now on belongs here.
    pub(super) fn go_on(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        if connection.withdrawal != Withdrawal::Untold {
            return;
        }
        connection.withdrawal = Withdrawal::Possible;
        let (key, is_free) = (connection.key, !connection.is_blocked && connection.is_open());
        if let Some(subscriber) = connection.subscriber.filter(|_| is_free) {
            self.report(Report::Unblocked { connection: key, subscriber });
        }
    }
}
