//! A Unix socket that this process listens on (B.4.2): for its own user alone unless configured otherwise, never
//! taken from a running program, and never left behind.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;

use super::{LocalBindError, MAX_SOCKET_PATH_BYTES};
use crate::wire::Socket;

/// The pause before a socket is tried again on which too many connections wait to be accepted.
const FULL_PAUSE: Duration = Duration::from_millis(10);

/// A socket that accepts connections.
#[derive(Debug)]
pub struct LocalDoor {
    listener: UnixListener,
    path: PathBuf,
    /// Tells other processes that the socket is ours. The lock file stays, so that two processes that start at
    /// the same time lock the same file. `None` for a socket that the system opened.
    lock: Option<File>,
}

/// A connection, with the user at its other end as the system reports it (B.4.5).
#[derive(Debug)]
pub struct Accepted {
    stream: UnixStream,
    user_id: u32,
    process_id: Option<u32>,
}

/// Connects to a socket. While as many connections as it holds wait to be accepted, it is tried again, so the
/// caller sets a time limit.
pub async fn connect(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(FULL_PAUSE).await,
            connected => return connected,
        }
    }
}

/// The user id of this process.
pub fn own_user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl LocalDoor {
    /// Opens a socket. A socket left behind by a killed process is removed. Without `for_others` only this user
    /// can connect; with it everyone can, and must be authenticated.
    ///
    /// Must be called within a tokio runtime.
    pub fn bind(path: &Path, for_others: bool) -> Result<Self, LocalBindError> {
        if path.as_os_str().as_bytes().len() > MAX_SOCKET_PATH_BYTES {
            return Err(LocalBindError::TooLong(path.to_owned()));
        }
        let failed = |error| LocalBindError::Failed(path.to_owned(), error);
        let lock = lock(path)?;
        match std::fs::symlink_metadata(path) {
            Ok(it) if it.file_type().is_socket() => {
                // A program that does not lock, perhaps an older version, may still listen there.
                if std::os::unix::net::UnixStream::connect(path).is_ok() {
                    return Err(LocalBindError::InUse(path.to_owned()));
                }
                std::fs::remove_file(path).map_err(failed)?;
            }
            Ok(_) => return Err(LocalBindError::NoSocket(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        let listener = StdListener::bind(path).map_err(failed)?;
        let mode = if for_others { 0o666 } else { 0o600 };
        std::fs::set_permissions(path, Permissions::from_mode(mode)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = UnixListener::from_std(listener).map_err(failed)?;
        Ok(Self { listener, path: path.to_owned(), lock: Some(lock) })
    }

    /// Takes a socket that the system, such as systemd, opened for us. It is never removed.
    ///
    /// Must be called within a tokio runtime.
    pub fn given(listener: StdListener) -> io::Result<Self> {
        let path = listener.local_addr()?.as_pathname().map(Path::to_owned).unwrap_or_default();
        listener.set_nonblocking(true)?;
        Ok(Self { listener: UnixListener::from_std(listener)?, path, lock: None })
    }

    /// The path of the socket. Empty for a socket without a path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection. Cancel-safe.
    pub async fn accept(&self) -> io::Result<Accepted> {
        let (stream, _) = self.listener.accept().await?;
        let peer = stream.peer_cred()?;
        let process_id = peer.pid().and_then(|pid| u32::try_from(pid).ok());
        Ok(Accepted { stream, user_id: peer.uid(), process_id })
    }
}

impl Drop for LocalDoor {
    fn drop(&mut self) {
        // While the lock is held, the socket can only be ours.
        if self.lock.is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Accepted {
    /// The id of the user at the other end, if it is not our own.
    pub fn other_user(&self) -> Option<u32> {
        Some(self.user_id).filter(|user_id| *user_id != own_user_id())
    }

    /// The process at the other end, if the system reports it.
    pub fn process_id(&self) -> Option<u32> {
        self.process_id
    }

    /// The connection, for a loop; nothing was read from it.
    pub fn into_socket(self) -> io::Result<(Socket, Vec<u8>)> {
        Ok((Socket::Unix(self.stream.into_std()?), Vec::new()))
    }

    /// The connection, for HTTP; nothing was read from it.
    pub fn into_stream(self) -> UnixStream {
        self.stream
    }

    /// The first byte that arrives, without consuming it; `None` if the peer ends before it.
    pub async fn first_byte(&mut self) -> io::Result<Option<u8>> {
        Ok(self.first_bytes(1).await?.first().copied())
    }

    /// The bytes that have arrived so far, up to this many, without consuming them; empty if the peer ends.
    pub async fn first_bytes(&mut self, most: usize) -> io::Result<Vec<u8>> {
        loop {
            self.stream.readable().await?;
            let looked = self.stream.try_io(tokio::io::Interest::READABLE, || {
                let mut bytes = vec![0; most];
                let peek = rustix::net::RecvFlags::PEEK;
                let (count, _) = rustix::net::recv(&self.stream, &mut bytes, peek)?;
                bytes.truncate(count);
                Ok(bytes)
            });
            match looked {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }

    /// Discards this many of the first bytes, which have already arrived.
    pub async fn skip(&mut self, count: usize) -> io::Result<()> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).await.map(drop)
    }
}

/// Locks a path for this process.
fn lock(path: &Path) -> Result<File, LocalBindError> {
    let failed = |error| LocalBindError::Failed(path.to_owned(), error);
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let mut options = OpenOptions::new();
    // Never follows a link that somebody else has put there.
    let no_follow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    options.create(true).truncate(false).write(true).mode(0o600).custom_flags(no_follow);
    let file = options.open(name).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(LocalBindError::InUse(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hub.sock");
        (folder, path)
    }

    #[tokio::test]
    async fn a_socket_is_of_its_user_alone_and_gone_when_the_door_is() {
        let (_folder, path) = place();
        let door = LocalDoor::bind(&path, false).expect("a socket");
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut client = std::os::unix::net::UnixStream::connect(&path).expect("connects");
        client.write_all(b"{}").expect("writes");
        let mut accepted = door.accept().await.expect("a connection");
        assert_eq!(accepted.other_user(), None);
        assert_eq!(accepted.first_byte().await.expect("a byte"), Some(b'{'));
        assert_eq!(accepted.first_byte().await.expect("the same byte"), Some(b'{'));
        drop(door);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_a_killed_process_left_behind_is_removed() {
        let (_folder, path) = place();
        drop(StdListener::bind(&path).expect("a socket that nobody removes"));
        assert!(path.exists());
        let door = LocalDoor::bind(&path, true).expect("a socket");
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
        drop(door);
    }

    #[tokio::test]
    async fn a_socket_that_someone_listens_on_and_a_file_are_left_alone() {
        let (_folder, path) = place();
        let first = LocalDoor::bind(&path, false).expect("a socket");
        assert!(matches!(LocalDoor::bind(&path, false), Err(LocalBindError::InUse(_))));
        assert!(std::os::unix::net::UnixStream::connect(&path).is_ok(), "it is still there");
        drop(first);
        let foreign = StdListener::bind(&path).expect("of someone who locks nothing");
        assert!(matches!(LocalDoor::bind(&path, false), Err(LocalBindError::InUse(_))));
        drop(foreign);
        std::fs::remove_file(&path).expect("gone");
        std::fs::write(&path, "precious").expect("a file");
        assert!(matches!(LocalDoor::bind(&path, false), Err(LocalBindError::NoSocket(_))));
        assert_eq!(std::fs::read(&path).expect("still there"), b"precious");
        let long = path.with_file_name("x".repeat(200));
        assert!(matches!(LocalDoor::bind(&long, false), Err(LocalBindError::TooLong(_))));
    }

    #[tokio::test]
    async fn a_socket_on_which_too_many_connections_wait_is_tried_again_until_there_is_room() {
        use socket2::{Domain, SockAddr, Socket, Type};
        let (_folder, path) = place();
        let listener = Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
        listener.bind(&SockAddr::unix(&path).expect("an address")).expect("bound");
        listener.listen(0).expect("listens");
        let mut waiting = Vec::new();
        let full = loop {
            match UnixStream::connect(&path).await {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        let connecting = connect(&path);
        // The listener stays until the new connection is there; without it, connecting is refused.
        let accepting = tokio::task::spawn_blocking(move || listener.accept().map(|_| listener));
        let (connected, accepted) = tokio::join!(connecting, accepting);
        connected.expect("it connects when there is room");
        accepted.expect("no panic").expect("accepted");
    }

    #[tokio::test]
    async fn a_peer_that_ends_before_the_first_byte_has_no_credential() {
        let (_folder, path) = place();
        let door = LocalDoor::bind(&path, false).expect("a socket");
        drop(std::os::unix::net::UnixStream::connect(&path).expect("connects"));
        let mut accepted = door.accept().await.expect("a connection");
        assert_eq!(accepted.first_byte().await.expect("an end"), None);
    }

    #[tokio::test]
    async fn a_socket_that_the_system_opened_is_used_and_never_removed() {
        let (_folder, path) = place();
        let door = LocalDoor::given(StdListener::bind(&path).expect("a socket")).expect("taken");
        assert_eq!(door.path(), path);
        drop(door);
        assert!(path.exists());
    }
}
