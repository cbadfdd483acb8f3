//! The way to the daemon of Codex: a WebSocket on a Unix socket of the same user.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aaep_bridge::follow::{FollowedAgent, ServerMessage};
use aaep_transport::link::{Link, websocket_over};
use aaep_transport::local;
use tokio::sync::mpsc;
use tokio::time::{interval, sleep, timeout};

use super::run::FollowRun;
use crate::console::{self, CommandFailure, name_of};
use crate::english::following;

/// The longest message of Codex. One that is longer ends the connection, and a new one begins.
const MAX_MESSAGE_BYTES: u32 = 16 << 20;

/// How long connecting may take, and how long there may be no sign of life.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const SILENCE_TIMEOUT: Duration = Duration::from_mins(1);

/// The pause between two tries, and how often threads are looked at that cannot be heard yet.
const PAUSE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(250);

/// The most messages that wait to be sent.
const MAX_WAITING: usize = 256;

/// Where the daemon listens.
pub(super) fn socket_path() -> Result<PathBuf, CommandFailure> {
    let set = |name: &str| env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let home = set("CODEX_HOME").or_else(|| set("HOME").map(|it| it.join(".codex")));
    let home = home.ok_or_else(|| following::no_home(FollowedAgent::Codex.name()))?;
    Ok(home.join("app-server-control/app-server-control.sock"))
}

/// Follows Codex for ever.
pub(super) fn follow(run: &FollowRun, place: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let why = console::reason(&error);
            run.say_away(&following::waits_for(run.agent.name(), &name_of(place), &why));
            return;
        }
    };
    runtime.block_on(async {
        loop {
            match connect(place).await {
                Ok(link) => {
                    stay(run, place, link).await;
                    let words = following::connection_lost(run.agent.name());
                    run.lost(&words);
                    run.say_away(&words);
                }
                Err(why) => {
                    run.say_away(&following::waits_for(run.agent.name(), &name_of(place), &why));
                }
            }
            sleep(PAUSE).await;
        }
    });
}

/// Connects. What listens there must be of the same user.
async fn connect(place: &Path) -> Result<Link, String> {
    let opening = async {
        let stream = local::connect(place).await.map_err(|error| console::reason(&error))?;
        let other = stream.peer_cred().map_err(|error: io::Error| console::reason(&error))?;
        if other.uid() != local::own_user_id() {
            return Err(following::OTHER_USER.to_owned());
        }
        websocket_over(stream, MAX_MESSAGE_BYTES, CONNECT_TIMEOUT, SILENCE_TIMEOUT)
            .await
            .map_err(|error| error.to_string())
    };
    let late = || Err(console::reason(&io::ErrorKind::TimedOut.into()));
    timeout(CONNECT_TIMEOUT, opening).await.unwrap_or_else(|_| late())
}

/// Passes messages until the connection ends.
async fn stay(run: &FollowRun, place: &Path, mut link: Link) {
    let (sender, mut waiting) = mpsc::channel(MAX_WAITING);
    let way = move |message: ServerMessage| match message {
        ServerMessage::Message(message) => sender.try_send(message.to_string()).is_ok(),
        ServerMessage::Post { .. } => false,
    };
    run.connected(&name_of(place), Box::new(way));
    let mut tick = interval(TICK);
    loop {
        tokio::select! {
            heard = link.receiver.next() => match heard {
                Ok(text) => {
                    if let Ok(message) = serde_json::from_str(&text) {
                        run.hear(&message);
                    }
                }
                Err(_) => return,
            },
            Some(message) = waiting.recv() => {
                if link.sender.send(message).await.is_err() {
                    return;
                }
            }
            _ = tick.tick() => run.tick(),
        }
    }
}
