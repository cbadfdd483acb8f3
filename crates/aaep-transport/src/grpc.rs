//! gRPC (B.5): the service, and the pump between a call and the wire loop.
//!
//! A call is one subscriber. Its messages go through a pair of sockets ([`crate::wire::pair`]) into the loop
//! that has all other subscribers, so that what waits, who is slow and how it ends is the same as elsewhere.
//! Nothing is buffered without a bound: see [`MAX_WAITING_CALL_MESSAGES`] and the bounds of HTTP/2 beside it.

mod channel;
mod closing;
mod deadline;
mod pump;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::http::Extensions;
use tokio::sync::mpsc;
use tonic::codegen::tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

pub use channel::{ALPN, Channel};
pub use closing::{CLOSE_CODE, close_code, closed_status};
pub use proto::aaep_service_server::AaepServiceServer;
pub use proto::{AaepMessage, GetManifestRequest, Manifest};

use crate::wire::PairEnd;
use proto::aaep_service_server::AaepService;

/// What is made of the description of the service.
#[expect(
    clippy::allow_attributes,
    clippy::default_trait_access,
    clippy::doc_markdown,
    clippy::too_many_lines,
    reason = "made by tonic"
)]
pub mod proto {
    tonic::include_proto!("aaep.v1");
}

/// The description of the service, for those who ask a server what it speaks.
pub const DESCRIPTION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/aaep.v1.bin"));

/// How many messages wait between the pump and HTTP/2 for a client that does not read.
pub const MAX_WAITING_CALL_MESSAGES: usize = 1;

/// How many bytes HTTP/2 holds for a client that does not read, beside the message that is on its way.
pub const MAX_SEND_BUFFER_BYTES: usize = 64 << 10;

/// How many bytes a client may send ahead on one call.
pub const CALL_WINDOW_BYTES: u32 = 64 << 10;

/// How many calls there may be on one connection at once.
pub const MAX_CALLS: u32 = 16;

/// How many bytes a client may send ahead on all calls of a connection together, so that one that is not
/// read from does not stop the others.
pub const CONNECTION_WINDOW_BYTES: u32 = CALL_WINDOW_BYTES * MAX_CALLS;

/// How much longer than its JSON a message may be: the tags, the lengths, and the type said once more.
pub(crate) const ENVELOPE_BYTES: usize = 1 << 10;

/// Who is behind the service.
pub trait Producer: Send + Sync + 'static {
    /// A subscriber calls. What was found out about it before is in the extensions of its request. The other
    /// end of the pair is in a loop, framed by length.
    fn listen(&self, caller: &Extensions) -> impl Future<Output = Result<PairEnd, Status>> + Send;

    /// The manifest, in JSON.
    fn manifest(&self) -> Bytes;
}

/// The service, for whoever answers HTTP/2. Messages have up to `max_message_bytes` of JSON.
pub fn service<P: Producer>(producer: P, max_message_bytes: u32) -> AaepServiceServer<Service<P>> {
    AaepServiceServer::new(Service { producer, max_message_bytes })
        .max_decoding_message_size(max_message_bytes as usize + ENVELOPE_BYTES)
}

/// The methods of the service.
#[derive(Debug)]
pub struct Service<P> {
    producer: P,
    max_message_bytes: u32,
}

/// What a subscriber says on one call.
#[derive(Debug)]
pub(crate) struct Outgoing(pub(crate) mpsc::Receiver<AaepMessage>);

impl Stream for Outgoing {
    type Item = AaepMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<AaepMessage>> {
        self.0.poll_recv(context)
    }
}

/// What a producer says on one call.
#[derive(Debug)]
pub struct Said(mpsc::Receiver<Result<AaepMessage, Status>>);

impl Stream for Said {
    type Item = Result<AaepMessage, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

#[tonic::async_trait]
impl<P: Producer> AaepService for Service<P> {
    type SubscribeStream = Said;

    async fn subscribe(
        &self,
        request: Request<Streaming<AaepMessage>>,
    ) -> Result<Response<Said>, Status> {
        let time = deadline::time_of(request.metadata())?;
        let end = self.producer.listen(request.extensions()).await?;
        let (sender, said) = mpsc::channel(MAX_WAITING_CALL_MESSAGES);
        let longest = self.max_message_bytes as usize;
        tokio::spawn(pump::pump(end, request.into_inner(), sender, longest, time));
        Ok(Response::new(Said(said)))
    }

    async fn get_manifest(
        &self,
        _request: Request<GetManifestRequest>,
    ) -> Result<Response<Manifest>, Status> {
        Ok(Response::new(Manifest { json: self.producer.manifest().into() }))
    }
}
