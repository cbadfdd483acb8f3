//! A named pipe that this process listens on (B.3). It is compiled, but was never run.
//!
//! It is a stream of bytes with our own framing, like a Unix socket (B.3.4), so that the code above both is the
//! same.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use interprocess::os::windows::named_pipe::tokio::{DuplexPipeStream, PipeListener};
use interprocess::os::windows::named_pipe::{PipeListenerOptions, pipe_mode};
use interprocess::os::windows::security_descriptor::SecurityDescriptor;
use tokio::io::AsyncReadExt as _;
use widestring::u16cstr;

use super::LocalBindError;
use crate::wire::{Socket, pair};

/// How many bytes the pipe may buffer in each direction.
const BUFFER_BYTES: u32 = 64 << 10;

/// A pipe that accepts connections.
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
    /// Opens a pipe for its owner and the system alone (B.3.2), even with `for_others`. Nobody can connect over
    /// the network.
    ///
    /// Must be called within a tokio runtime.
    pub fn bind(path: &Path, _for_others: bool) -> Result<Self, LocalBindError> {
        let open = || {
            // Only the owner and the system have rights; nobody else has any.
            let only_ours = u16cstr!("D:P(A;;GA;;;OW)(A;;GA;;;SY)");
            let mut options = PipeListenerOptions::new().path(path);
            options.security_descriptor = Some(SecurityDescriptor::deserialize(only_ours)?);
            options.accept_remote = false;
            options.input_buffer_size_hint = BUFFER_BYTES;
            options.output_buffer_size_hint = BUFFER_BYTES;
            options.create_tokio_duplex::<pipe_mode::Bytes>()
        };
        let failed = |error: io::Error| match error.kind() {
            // Somebody else created the pipe first.
            io::ErrorKind::PermissionDenied => LocalBindError::InUse(path.to_owned()),
            _ => LocalBindError::Failed(path.to_owned(), error),
        };
        Ok(Self { listener: open().map_err(failed)?, path: path.to_owned() })
    }

    /// The path of the pipe.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection. Cancel-safe.
    pub async fn accept(&self) -> io::Result<Accepted> {
        Ok(Accepted { stream: self.listener.accept().await?, first: Vec::new() })
    }
}

impl Accepted {
    /// The id of the user at the other end, if it is not our own. Nobody else can connect.
    pub fn other_user(&self) -> Option<u32> {
        None
    }

    /// The process at the other end, if the system reports it.
    pub fn process_id(&self) -> Option<u32> {
        None
    }

    /// The first byte that arrives; `None` if the peer ends before it.
    pub async fn first_byte(&mut self) -> io::Result<Option<u8>> {
        Ok(self.first_bytes(1).await?.first().copied())
    }

    /// The bytes that have arrived so far, up to this many; empty if the peer ends.
    pub async fn first_bytes(&mut self, most: usize) -> io::Result<Vec<u8>> {
        if self.first.len() < most {
            let mut bytes = vec![0; most - self.first.len()];
            let count = self.stream.read(&mut bytes).await?;
            self.first.extend_from_slice(&bytes[..count]);
        }
        Ok(self.first.clone())
    }

    /// Discards this many of the first bytes, which have already arrived.
    pub async fn skip(&mut self, count: usize) -> io::Result<()> {
        self.first.drain(..count.min(self.first.len()));
        Ok(())
    }

    /// The connection, for a loop, and the bytes that were read from it. A task copies between the pipe and the
    /// loop.
    pub fn into_socket(self) -> io::Result<(Socket, Vec<u8>)> {
        let (socket, mut end) = pair()?;
        let Self { mut stream, first } = self;
        tokio::spawn(async move {
            // When either side ends, both end; the loop reports why.
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
