//! How the hub is, for those who watch over services: the health service of gRPC.

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

use super::super::App;
use super::SERVICE;

/// How often it is looked for those who watch.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The health of the hub.
pub(super) struct HubHealth(pub(super) Arc<App>);

/// What somebody who watches hears.
#[derive(Debug)]
pub(super) struct Watched(mpsc::Receiver<Result<HealthCheckResponse, Status>>);

impl Stream for Watched {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

#[tonic::async_trait]
impl Health for HubHealth {
    type WatchStream = Watched;

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
    ) -> Result<Response<Watched>, Status> {
        let (sender, watched) = mpsc::channel(1);
        let (app, service) = (Arc::clone(&self.0), request.into_inner().service);
        tokio::spawn(async move {
            let mut stop = app.stop.clone();
            tokio::select! {
                () = watch(&app, &service, &sender) => {}
                () = stop.finishing() => {}
            }
        });
        Ok(Response::new(Watched(watched)))
    }
}

/// Tells how the hub is, now and whenever that changes, until nobody listens.
async fn watch(
    app: &App,
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
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = sender.closed() => return,
        }
    }
}

fn status(app: &App, service: &str) -> ServingStatus {
    match service {
        "" | SERVICE if app.hub.trouble().is_none() => ServingStatus::Serving,
        "" | SERVICE => ServingStatus::NotServing,
        _ => ServingStatus::ServiceUnknown,
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}
