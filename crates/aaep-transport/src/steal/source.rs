//! The kinds of connections that a server accepts, how they become sockets, and the wrapper that watches them
//! while hyper has them.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio_rustls::server::TlsStream;

use super::{FLUSHED, HEAD_WRITTEN, TheftState};
use crate::wire::Socket;

/// A connection that can be taken out of tokio.
pub trait Source: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Takes the connection out of tokio.
    fn into_socket(self) -> io::Result<Socket>;
}

impl Source for TcpStream {
    fn into_socket(self) -> io::Result<Socket> {
        Ok(Socket::Tcp(self.into_std()?))
    }
}

#[cfg(unix)]
impl Source for UnixStream {
    fn into_socket(self) -> io::Result<Socket> {
        Ok(Socket::Unix(self.into_std()?))
    }
}

impl Source for TlsStream<TcpStream> {
    fn into_socket(self) -> io::Result<Socket> {
        let (tcp, session) = self.into_inner();
        Ok(Socket::Tls(Box::new((tcp.into_std()?, session))))
    }
}

/// A WebSocket connection could not be taken over. It is closed; the client can open another one.
#[derive(Debug)]
pub enum UpgradeError {
    /// It was not served by [`super::serve_connection`]. Serve it with that.
    Foreign,
    /// It could not be taken out of tokio.
    Socket(io::Error),
}

impl fmt::Display for UpgradeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str(
                "The connection was served by other code and cannot be taken over. \
                 Serve it with serve_connection.",
            ),
            Self::Socket(error) => {
                write!(f, "Taking over a connection failed: {error}. The client can connect again.")
            }
        }
    }
}

impl std::error::Error for UpgradeError {}

/// The socket of a WebSocket connection whose upgrade hyper has answered, and the bytes that hyper had read
/// ahead.
pub fn upgraded(upgraded: Upgraded) -> Result<(Socket, Vec<u8>), UpgradeError> {
    let upgraded = match downcast::<TcpStream>(upgraded) {
        Err(upgraded) => upgraded,
        Ok(done) => return done,
    };
    #[cfg(unix)]
    let upgraded = match downcast::<UnixStream>(upgraded) {
        Err(upgraded) => upgraded,
        Ok(done) => return done,
    };
    downcast::<TlsStream<TcpStream>>(upgraded).unwrap_or(Err(UpgradeError::Foreign))
}

type TakenSocket = Result<(Socket, Vec<u8>), UpgradeError>;

fn downcast<S: Source>(upgraded: Upgraded) -> Result<TakenSocket, Upgraded> {
    let parts = upgraded.downcast::<TokioIo<WatchedSource<S>>>()?;
    let socket = parts.io.into_inner().source.into_socket();
    Ok(socket.map(|socket| (socket, parts.read_buf.to_vec())).map_err(UpgradeError::Socket))
}

/// A connection while hyper has it.
pub(super) struct WatchedSource<S> {
    pub(super) source: S,
    pub(super) theft: Arc<TheftState>,
}

impl<S: Source> AsyncRead for WatchedSource<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.source).poll_read(context, buffer)
    }
}

impl<S: Source> AsyncWrite for WatchedSource<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.source).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.source).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.source.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.source).poll_flush(context);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            // hyper flushes the socket only when its own buffer is empty.
            self.theft.reach(HEAD_WRITTEN, FLUSHED);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.source).poll_shutdown(context)
    }
}
