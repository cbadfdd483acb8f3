//! A named pipe that this process listens on (B.3). It is compiled, and was never run.
//!
//! It is a stream of bytes with our own framing, as a Unix socket is (B.3.4), so that there is one code above
//! both.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use interprocess::os::windows::named_pipe::tokio::{DuplexPipeStream, PipeListener};
use interprocess::os::windows::named_pipe::{PipeListenerOptions, pipe_mode};
use interprocess::os::windows::security_descriptor::SecurityDescriptor;
use tokio::io::AsyncReadExt as _;
use widestring::u16cstr;

use super::BindError;
use crate::wire::{Socket, pair};

/// How many bytes may wait in the pipe in each direction.
const BUFFER_BYTES: u32 = 64 << 10;

/// A pipe on which connections are accepted.
pub struct LocalDoor {
    listener: PipeListener<pipe_mode::Bytes, pipe_mode::Bytes>,
    path: PathBuf,
}

/// A connection.
#[derive(Debug)]
pub struct Accepted {
    stream: DuplexPipeStream<pipe_mode::Bytes>,
    first: Vec<u8>,
}

impl LocalDoor {
    /// Opens a pipe for its owner and the system alone (B.3.2), whoever else is known by other means. Nobody
    /// comes over the network.
    ///
    /// Must be called within a tokio runtime.
    pub fn bind(path: &Path, _for_others: bool) -> Result<Self, BindError> {
        let open = || {
            // The rights of the owner and the system are all; nobody else has any.
            let only_ours = u16cstr!("D:P(A;;GA;;;OW)(A;;GA;;;SY)");
            let mut options = PipeListenerOptions::new().path(path);
            options.security_descriptor = Some(SecurityDescriptor::deserialize(only_ours)?);
            options.accept_remote = false;
            options.input_buffer_size_hint = BUFFER_BYTES;
            options.output_buffer_size_hint = BUFFER_BYTES;
            options.create_tokio_duplex::<pipe_mode::Bytes>()
        };
        let failed = |error: io::Error| match error.kind() {
            // Somebody else made the pipe first.
            io::ErrorKind::PermissionDenied => BindError::InUse(path.to_owned()),
            _ => BindError::Failed(path.to_owned(), error),
        };
        Ok(Self { listener: open().map_err(failed)?, path: path.to_owned() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection. May be dropped while it waits.
    pub async fn accept(&self) -> io::Result<Accepted> {
        Ok(Accepted { stream: self.listener.accept().await?, first: Vec::new() })
    }
}

impl Accepted {
    /// The number of the user at the other end, if it is another one than ours. Nobody else can connect.
    pub fn other_user(&self) -> Option<u32> {
        None
    }

    /// The process at the other end, if the system says so.
    pub fn process_id(&self) -> Option<u32> {
        None
    }

    /// The first byte that comes; none if the peer ends before it.
    pub async fn first_byte(&mut self) -> io::Result<Option<u8>> {
        Ok(self.first_bytes(1).await?.first().copied())
    }

    /// What has come so far, up to this many bytes; none if the peer ends.
    pub async fn first_bytes(&mut self, most: usize) -> io::Result<Vec<u8>> {
        if self.first.len() < most {
            let mut bytes = vec![0; most - self.first.len()];
            let count = self.stream.read(&mut bytes).await?;
            self.first.extend_from_slice(&bytes[..count]);
        }
        Ok(self.first.clone())
    }

    /// Takes this many of the first bytes away. They have come.
    pub async fn skip(&mut self, count: usize) -> io::Result<()> {
        self.first.drain(..count.min(self.first.len()));
        Ok(())
    }

    /// The connection, for a loop, and what was read from it. A task copies between the pipe and the loop.
    pub fn into_socket(self) -> io::Result<(Socket, Vec<u8>)> {
        let (socket, mut end) = pair()?;
        let Self { mut stream, first } = self;
        tokio::spawn(async move {
            // Whoever ends first ends both; the loop says why.
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut end).await;
        });
        Ok((socket, first))
    }
}

impl fmt::Debug for LocalDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalDoor").field("path", &self.path).finish_non_exhaustive()
    }
}
