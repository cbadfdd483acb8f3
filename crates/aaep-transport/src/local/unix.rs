//! A Unix socket that this process listens on (B.4.2): of its user alone unless told otherwise, never taken
//! from a program that runs, never left behind.

use std::fmt;
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

use super::MAX_SOCKET_PATH_BYTES;

/// A socket on which connections are accepted.
#[derive(Debug)]
pub struct UnixDoor {
    listener: UnixListener,
    path: PathBuf,
    /// Says to other processes that the socket is ours. The file stays, so that two who start at the same
    /// time lock the same one. None for a socket that the system opened.
    lock: Option<File>,
}

/// A connection, with the user at its other end as the system knows them (B.4.5).
#[derive(Debug)]
pub struct Accepted {
    /// The connection.
    pub stream: UnixStream,
    /// The number of the user.
    pub user_id: u32,
}

/// Why there is no socket.
#[derive(Debug)]
pub enum BindError {
    /// Another process listens there.
    InUse(PathBuf),
    /// Something that is no socket is there. It is left alone.
    NoSocket(PathBuf),
    /// The path is longer than a socket can have.
    TooLong(PathBuf),
    /// The system does not let us.
    Failed(PathBuf, io::Error),
}

/// The number of the user of this process.
pub fn own_user_id() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl UnixDoor {
    /// Opens a socket. What a process that was killed left behind is removed. Without `for_others` only this
    /// user can connect; with it everyone can, and must be asked who they are.
    ///
    /// Must be called within a tokio runtime.
    pub fn bind(path: &Path, for_others: bool) -> Result<Self, BindError> {
        if path.as_os_str().as_bytes().len() > MAX_SOCKET_PATH_BYTES {
            return Err(BindError::TooLong(path.to_owned()));
        }
        let failed = |error| BindError::Failed(path.to_owned(), error);
        let lock = lock(path)?;
        match std::fs::symlink_metadata(path) {
            Ok(it) if it.file_type().is_socket() => {
                // Whoever does not lock, an older program perhaps, may still listen there.
                if std::os::unix::net::UnixStream::connect(path).is_ok() {
                    return Err(BindError::InUse(path.to_owned()));
                }
                std::fs::remove_file(path).map_err(failed)?;
            }
            Ok(_) => return Err(BindError::NoSocket(path.to_owned())),
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

    /// Takes a socket that the system opened for us, such as systemd. It is never removed.
    ///
    /// Must be called within a tokio runtime.
    pub fn given(listener: StdListener) -> io::Result<Self> {
        let path = listener.local_addr()?.as_pathname().map(Path::to_owned).unwrap_or_default();
        listener.set_nonblocking(true)?;
        Ok(Self { listener: UnixListener::from_std(listener)?, path, lock: None })
    }

    /// Where it is. Empty for a socket without a path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection. May be dropped while it waits.
    pub async fn accept(&self) -> io::Result<Accepted> {
        let (stream, _) = self.listener.accept().await?;
        let user_id = stream.peer_cred()?.uid();
        Ok(Accepted { stream, user_id })
    }
}

impl Drop for UnixDoor {
    fn drop(&mut self) {
        // While it is locked it can only be ours.
        if self.lock.is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Accepted {
    /// The first byte that comes, which stays where it is; none if the peer ends before it.
    pub async fn first_byte(&self) -> io::Result<Option<u8>> {
        loop {
            self.stream.readable().await?;
            let looked = self.stream.try_io(tokio::io::Interest::READABLE, || {
                let mut byte = [0; 1];
                let peek = rustix::net::RecvFlags::PEEK;
                let (count, _) = rustix::net::recv(&self.stream, &mut byte, peek)?;
                Ok(byte.into_iter().take(count).next())
            });
            match looked {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    }
}

/// Locks a path for this process.
fn lock(path: &Path) -> Result<File, BindError> {
    let failed = |error| BindError::Failed(path.to_owned(), error);
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let mut options = OpenOptions::new();
    // Never through a link that somebody else has put there.
    let no_follow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    options.create(true).truncate(false).write(true).mode(0o600).custom_flags(no_follow);
    let file = options.open(name).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(BindError::InUse(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => write!(
                f,
                "Another program listens on the socket {}, perhaps another hub. Stop it, or choose another \
                 path.",
                shown(path)
            ),
            Self::NoSocket(path) => write!(
                f,
                "{} is there and is no socket. Move it away, or choose another path.",
                shown(path)
            ),
            Self::TooLong(path) => write!(
                f,
                "The path {} is too long for a socket. Choose one of at most {MAX_SOCKET_PATH_BYTES} bytes.",
                shown(path)
            ),
            Self::Failed(path, error) => write!(
                f,
                "The socket {} could not be opened: {}. Choose another path.",
                shown(path),
                error.kind()
            ),
        }
    }
}

fn shown(path: &Path) -> String {
    aaep::printable(&path.to_string_lossy()).into_owned()
}

impl std::error::Error for BindError {}

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
        let door = UnixDoor::bind(&path, false).expect("a socket");
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut client = std::os::unix::net::UnixStream::connect(&path).expect("connects");
        client.write_all(b"{}").expect("writes");
        let accepted = door.accept().await.expect("a connection");
        assert_eq!(accepted.user_id, own_user_id());
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
        let door = UnixDoor::bind(&path, true).expect("a socket");
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
        drop(door);
    }

    #[tokio::test]
    async fn a_socket_that_someone_listens_on_and_a_file_are_left_alone() {
        let (_folder, path) = place();
        let first = UnixDoor::bind(&path, false).expect("a socket");
        assert!(matches!(UnixDoor::bind(&path, false), Err(BindError::InUse(_))));
        assert!(std::os::unix::net::UnixStream::connect(&path).is_ok(), "it is still there");
        drop(first);
        let foreign = StdListener::bind(&path).expect("of someone who locks nothing");
        assert!(matches!(UnixDoor::bind(&path, false), Err(BindError::InUse(_))));
        drop(foreign);
        std::fs::remove_file(&path).expect("gone");
        std::fs::write(&path, "precious").expect("a file");
        assert!(matches!(UnixDoor::bind(&path, false), Err(BindError::NoSocket(_))));
        assert_eq!(std::fs::read(&path).expect("still there"), b"precious");
        let long = path.with_file_name("x".repeat(200));
        assert!(matches!(UnixDoor::bind(&long, false), Err(BindError::TooLong(_))));
    }

    #[tokio::test]
    async fn who_ends_before_the_first_byte_has_none() {
        let (_folder, path) = place();
        let door = UnixDoor::bind(&path, false).expect("a socket");
        drop(std::os::unix::net::UnixStream::connect(&path).expect("connects"));
        let accepted = door.accept().await.expect("a connection");
        assert_eq!(accepted.first_byte().await.expect("an end"), None);
    }

    #[tokio::test]
    async fn a_socket_that_the_system_opened_is_used_and_never_removed() {
        let (_folder, path) = place();
        let door = UnixDoor::given(StdListener::bind(&path).expect("a socket")).expect("taken");
        assert_eq!(door.path(), path);
        drop(door);
        assert!(path.exists());
    }
}
