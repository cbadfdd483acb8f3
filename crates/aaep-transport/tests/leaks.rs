//! Connections that come and go leave nothing behind. Alone in its process, because it counts its files.
#![cfg(target_os = "linux")]

use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use aaep_transport::Protocol;
use aaep_transport::wire::{
    Command, Flow, Reports, Socket, Wire, WireReport, WireSettings, WireSubscriber,
};

struct Recorder(Sender<WireReport>);

impl Reports for Recorder {
    fn report(&mut self, report: WireReport) -> Flow {
        self.0.send(report).expect("the test listens");
        Flow::Continue
    }
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("a folder").count()
}

#[test]
fn two_hundred_connections_that_come_and_go_leave_nothing_behind() {
    let (sender, reports) = mpsc::channel();
    let wire = Wire::start(WireSettings::default(), Recorder(sender)).expect("a loop");
    let handle = wire.handle();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let before = open_files();
    for turn in 0..200 {
        let protocol = match turn % 3 {
            0 => Protocol::WebSocket,
            1 => Protocol::SseChunked { named: true },
            _ => Protocol::SsePlain { named: true },
        };
        let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("in");
        let socket = Socket::Tcp(listener.accept().expect("accepts").0);
        let connection = handle.new_key();
        handle
            .send(vec![
                Command::Add { connection, socket, protocol, read_ahead: Vec::new() },
                Command::Attach { connection, subscriber: WireSubscriber(turn) },
            ])
            .expect("runs");
        drop(client);
        let report = reports.recv_timeout(Duration::from_secs(20)).expect("a report");
        let WireReport::Gone { connection: gone, subscriber, .. } = report else {
            panic!("{report:?}")
        };
        assert_eq!((gone, subscriber), (connection, Some(WireSubscriber(turn))));
    }
    // The last one is closed before it is reported.
    assert_eq!(open_files(), before);
}
