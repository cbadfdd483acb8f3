//! Which connection gives way, with counts alone.

use super::*;
use crate::access::limits::Limits;

fn guard() -> Guard {
    Guard::new(Limits { connections: 3, connections_per_principal: 2, ..Limits::default() })
}

/// A connection with a request of this principal in progress.
fn busy(guard: &Guard, principal: &str) -> Result<ConnectionPermit, LimitError> {
    let mut permit = guard.connection(ConnectionSource::Unknown)?;
    permit.work();
    permit.belongs_to(Claim::of(principal), 0)?;
    Ok(permit)
}

#[test]
fn connections_are_bounded_and_come_back() {
    let guard = guard();
    let first = busy(&guard, "a").expect("room");
    let _others = [busy(&guard, "b").expect("room"), busy(&guard, "c").expect("room")];
    assert_eq!(busy(&guard, "d").err(), Some(LimitError::Connections));
    drop(first);
    assert!(busy(&guard, "d").is_ok());
    assert_eq!(guard.connections(), 2);
}

#[tokio::test]
async fn an_unclaimed_connection_keeps_nobody_out_even_if_something_happens_on_it() {
    let guard = guard();
    let most = UNCLAIMED_CONNECTIONS;
    let mut unclaimed: Vec<_> =
        (0..most).map(|_| guard.connection(ConnectionSource::Unknown).expect("room")).collect();
    unclaimed[1..].iter_mut().for_each(ConnectionPermit::work);
    let mut newer = Vec::new();
    for leaving in unclaimed.drain(..3) {
        let mut permit = guard.connection(ConnectionSource::Unknown).expect("room");
        permit.work();
        newer.push(permit);
        leaving.gives_way().notified().await;
    }
    assert_eq!(newer[0].belongs_to(Claim::of("a"), 0), Ok(()));
    assert_eq!(guard.connections(), most);
}

#[test]
fn a_connection_that_carries_a_call_gives_way_to_nobody_until_it_ends() {
    let guard = guard();
    let mut carrier = guard.connection(ConnectionSource::Unknown).expect("room");
    carrier.carry();
    let call = guard.claimed_connection(Claim::of("a"), 0).expect("room");
    assert_eq!(guard.connections(), 2);
    assert!(!guard.make_way(), "both stay");
    drop(call);
    carrier.put_down();
    assert!(guard.make_way());
}

#[tokio::test]
async fn a_quiet_connection_gives_way_the_oldest_first() {
    let guard = guard();
    let mut all = [busy(&guard, "a").expect("room"), busy(&guard, "a").expect("room")];
    let mut third = guard.connection(ConnectionSource::Unknown).expect("room");
    third.work();
    let full = third.belongs_to(Claim::of("a"), 0);
    assert_eq!(full, Err(LimitError::ConnectionsOfPrincipal), "something happens on both");
    all[1].rest();
    all[0].rest();
    assert_eq!(third.belongs_to(Claim::of("a"), 0), Ok(()));
    all[1].gives_way().notified().await;
}

#[test]
fn places_are_kept_for_answers_and_more_for_the_person() {
    let guard = guard();
    let mut held: Vec<_> = (0..3).map(|n| busy(&guard, &n.to_string()).expect("room")).collect();
    let mut claim = |principal: &str, reserve| {
        let mut permit = guard.connection(ConnectionSource::Unknown).expect("room");
        permit.work();
        let claimed = permit.belongs_to(Claim { reserve, ..Claim::of(principal) }, 0);
        held.push(permit);
        claimed
    };
    assert_eq!(claim("new", Reserve::None), Err(LimitError::Connections));
    for number in 0..RESERVED_CONNECTIONS {
        assert_eq!(claim(&format!("answers {number}"), Reserve::Answers), Ok(()));
    }
    assert_eq!(claim("new", Reserve::Answers), Err(LimitError::Connections));
    assert_eq!(claim("person", Reserve::Person), Ok(()));
}

#[test]
fn one_program_leaves_places_for_the_others() {
    let limits = Limits { connections_per_principal: 4, ..Limits::default() };
    let guard = Guard::new(limits);
    let mut busy: Vec<_> =
        (0..5).map(|_| guard.connection(ConnectionSource::Unknown).expect("room")).collect();
    busy.iter_mut().for_each(ConnectionPermit::work);
    let of =
        |program| Claim { program: Some(program), is_local_socket: true, ..Claim::of("local") };
    for permit in &mut busy[..3] {
        permit.belongs_to(of(1), 0).expect("room");
    }
    assert_eq!(busy[3].belongs_to(of(1), 0), Err(LimitError::ConnectionsOfProgram));
    assert_eq!(busy[3].belongs_to(of(2), 0), Ok(()));
    let full = busy[4].belongs_to(of(2), 0);
    assert_eq!(full, Err(LimitError::ConnectionsOfPrincipal));
}

#[test]
fn one_principal_cannot_take_everything() {
    let guard = guard();
    let mut three: Vec<_> =
        (0..3).map(|_| guard.connection(ConnectionSource::Unknown).expect("room")).collect();
    three.iter_mut().for_each(ConnectionPermit::work);
    assert_eq!(three[0].belongs_to(Claim::of("a"), 0), Ok(()));
    assert_eq!(three[0].belongs_to(Claim::of("a"), 0), Ok(()), "the same again takes nothing");
    assert_eq!(three[1].belongs_to(Claim::of("a"), 0), Ok(()));
    assert_eq!(three[2].belongs_to(Claim::of("a"), 0), Err(LimitError::ConnectionsOfPrincipal));
    assert_eq!(three[2].belongs_to(Claim::of("b"), 0), Ok(()));
    assert_eq!(three[0].belongs_to(Claim::of("b"), 0), Ok(()), "it is no more that of a");
    assert_eq!(three[2].belongs_to(Claim::of("a"), 0), Ok(()));
}

#[tokio::test]
async fn a_program_with_one_connection_keeps_it_however_many_the_others_open() {
    let guard = guard();
    let of = |program| ConnectionSource::Program(program);
    let mut persons = guard.connection(of(1)).expect("room");
    let mut flood = Vec::new();
    for number in 0..4 * UNCLAIMED_CONNECTIONS {
        let program = 2 + u32::try_from(number % 5).expect("small");
        let mut permit = guard.connection(of(program)).expect("room");
        permit.work();
        flood.push(permit);
        // Those that were asked to end have ended.
        while flood.len() >= UNCLAIMED_CONNECTIONS {
            let at = flood.iter_mut().position(|it| {
                it.unlist();
                it.list();
                it.is_leaving
            });
            flood.remove(at.expect("one of the flood gives way"));
        }
    }
    assert_eq!(persons.belongs_to(Claim::of("person"), 0), Ok(()));
    assert!(!persons.is_leaving);
}

#[test]
fn many_connections_that_are_about_to_end_refuse_none_to_another_program() {
    let guard = guard();
    let of = |program| ConnectionSource::Program(program);
    let most = UNCLAIMED_CONNECTIONS + MAX_LEAVING;
    let _flood: Vec<_> = (0..most).map(|_| guard.connection(of(1)).expect("room")).collect();
    assert_eq!(guard.connection(of(1)).err(), Some(LimitError::Connections));
    assert!(guard.connection(of(2)).is_ok());
}

#[test]
fn connections_of_another_machine_share_one_source() {
    let source = |text: &str| ConnectionSource::machine(text.parse().expect("an address"));
    assert_eq!(source("2001:db8::1"), source("2001:db8::2"));
    assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
    assert_eq!(source("::ffff:192.0.2.1"), source("192.0.2.1"));
    assert_ne!(source("192.0.2.1"), source("192.0.2.2"));
}
