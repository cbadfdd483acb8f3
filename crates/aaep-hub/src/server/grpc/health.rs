//! The gRPC health service, for programs that monitor services.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::mpsc;
use tonic::codegen::tokio_stream::Stream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::super::ServerApp;
use super::SERVICE;

/// How often the health is checked for watchers.
const CHECK_EVERY: Duration = Duration::from_secs(1);

pub(super) struct HubHealth(pub(super) Arc<ServerApp>);

/// The stream of health changes for one watcher.
#[derive(Debug)]
pub(super) struct HealthStream(mpsc::Receiver<Result<HealthCheckResponse, Status>>);

impl Stream for HealthStream {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

#[tonic::async_trait]
impl Health for HubHealth {
    type WatchStream = HealthStream;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        match status(&self.0, &request.into_inner().service) {
            ServingStatus::ServiceUnknown => Err(Status::not_found(
                "There is no such service here. Ask without a name for the hub as a whole.",
            )),
            status => Ok(Response::new(response(status))),
        }
    }

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthStream>, Status> {
        let (sender, watched) = mpsc::channel(1);
        let (app, service) = (Arc::clone(&self.0), request.into_inner().service);
        tokio::spawn(async move {
            let mut stop = app.stop.clone();
            tokio::select! {
                () = watch(&app, &service, &sender) => {}
                () = stop.finishing() => {}
            }
        });
        Ok(Response::new(HealthStream(watched)))
    }
}

/// Sends the health of the hub, now and whenever it changes, until the watcher leaves.
async fn watch(
    app: &ServerApp,
    service: &str,
    sender: &mpsc::Sender<Result<HealthCheckResponse, Status>>,
) {
    let mut told = None;
    loop {
        let status = status(app, service);
        if told.replace(status) != Some(status) && sender.send(Ok(response(status))).await.is_err()
        {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(CHECK_EVERY) => {}
            () = sender.closed() => return,
        }
    }
}

fn status(app: &ServerApp, service: &str) -> ServingStatus {
    match service {
        "" | SERVICE if app.hub.trouble().is_none() => ServingStatus::Serving,
        "" | SERVICE => ServingStatus::NotServing,
        _ => ServingStatus::ServiceUnknown,
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}
