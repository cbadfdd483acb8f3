//! gRPC (B.5): the service, and the pump between a call and the wire loop.
//!
//! Each call is one subscriber. Its messages go through a pair of sockets ([`crate::wire::pair`]) into the loop
//! that serves all other subscribers, so that backlogs, slow readers and closing work the same as on other wires.
//! Every buffer is bounded: see [`MAX_WAITING_CALL_MESSAGES`] and the HTTP/2 limits next to it.

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

/// Code generated from the description of the service.
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

/// The description of the service, for server reflection.
pub const DESCRIPTION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/aaep.v1.bin"));

/// How many messages are buffered between the pump and HTTP/2 for a client that does not read.
pub const MAX_WAITING_CALL_MESSAGES: usize = 1;

/// How many bytes HTTP/2 buffers for a client that does not read, besides the message being sent.
pub const MAX_SEND_BUFFER_BYTES: usize = 64 << 10;

/// How many bytes a client may send ahead on one call.
pub const CALL_WINDOW_BYTES: u32 = 64 << 10;

/// How many calls one connection may have at once.
pub const MAX_CALLS: u32 = 16;

/// How many bytes a client may send ahead on all calls of a connection together, so that a call that is not read
/// does not block the others.
pub const CONNECTION_WINDOW_BYTES: u32 = CALL_WINDOW_BYTES * MAX_CALLS;

/// By how much a message may exceed its JSON: the tags, the lengths, and the repeated type.
pub(crate) const ENVELOPE_BYTES: usize = 1 << 10;

/// The producer behind the service.
pub trait Producer: Send + Sync + 'static {
    /// Accepts a call from a subscriber. The extensions of its request hold what is already known about the
    /// caller. Returns one end of a pair; the other end is in a loop, framed by length.
    fn listen(&self, caller: &Extensions) -> impl Future<Output = Result<PairEnd, Status>> + Send;

    /// The manifest, as JSON.
    fn manifest(&self) -> Bytes;
}

/// The service, for an HTTP/2 server. Messages have up to `max_message_bytes` of JSON.
pub fn service<P: Producer>(producer: P, max_message_bytes: u32) -> AaepServiceServer<Service<P>> {
    AaepServiceServer::new(Service { producer, max_message_bytes })
        .max_decoding_message_size(max_message_bytes as usize + ENVELOPE_BYTES)
}

/// Implements the methods of the service.
#[derive(Debug)]
pub struct Service<P> {
    producer: P,
    max_message_bytes: u32,
}

/// The messages of a subscriber on one call.
#[derive(Debug)]
pub(crate) struct SubscriberMessages(pub(crate) mpsc::Receiver<AaepMessage>);

impl Stream for SubscriberMessages {
    type Item = AaepMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<AaepMessage>> {
        self.0.poll_recv(context)
    }
}

/// The messages of a producer on one call.
#[derive(Debug)]
pub struct ProducerMessages(mpsc::Receiver<Result<AaepMessage, Status>>);

impl Stream for ProducerMessages {
    type Item = Result<AaepMessage, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

#[tonic::async_trait]
impl<P: Producer> AaepService for Service<P> {
    type SubscribeStream = ProducerMessages;

    async fn subscribe(
        &self,
        request: Request<Streaming<AaepMessage>>,
    ) -> Result<Response<ProducerMessages>, Status> {
        let time = deadline::time_of(request.metadata())?;
        let end = self.producer.listen(request.extensions()).await?;
        let (sender, said) = mpsc::channel(MAX_WAITING_CALL_MESSAGES);
        let longest = self.max_message_bytes as usize;
        tokio::spawn(pump::pump(end, request.into_inner(), sender, longest, time));
        Ok(Response::new(ProducerMessages(said)))
    }

    async fn get_manifest(
        &self,
        _request: Request<GetManifestRequest>,
    ) -> Result<Response<Manifest>, Status> {
        Ok(Response::new(Manifest { json: self.producer.manifest().into() }))
    }
}
