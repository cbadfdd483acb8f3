//! The HTTP requests of a link. One redirect is followed, within the server.

use std::sync::Arc;

use aaep_http::{
    AnswerBody, ByteStream, CallAnswer, CallConnection, CallError, CallOptions, HttpAddress,
    HttpCall, HttpCaller,
};
use hyper::StatusCode;
use hyper::header::LOCATION;
use tokio::time::timeout;

use super::dial::{DialError, DialOptions};

/// The largest response body that is read to learn the reason of a refusal.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// How many characters of a refusal are repeated.
const MAX_REASON_CHARS: usize = 500;

/// Sends the requests of a link to its producer.
pub(super) struct LinkCaller(HttpCaller);

impl LinkCaller {
    pub(super) fn new(address: &HttpAddress, options: &DialOptions) -> Result<Self, DialError> {
        let options = CallOptions {
            bearer: options.bearer.clone(),
            tls: options.tls.as_ref().map(Arc::clone),
            insecure_allow_plain_http: options.insecure_allow_plain_http,
            connect_timeout: options.connect_timeout,
            answer_timeout: options.answer_timeout,
        };
        HttpCaller::new(address, options)
            .map(LinkCaller)
            .map_err(|error| dial_error(address, error))
    }

    /// A caller that negotiates HTTP/2 if it uses TLS; its user then speaks HTTP/2 on the stream.
    #[cfg(feature = "grpc")]
    pub(super) fn of_http2(
        address: &HttpAddress,
        options: &DialOptions,
    ) -> Result<Self, DialError> {
        let LinkCaller(caller) = LinkCaller::new(address, options)?;
        Ok(LinkCaller(caller.offering(&[crate::grpc::ALPN])))
    }

    /// The header that identifies us.
    #[cfg(feature = "grpc")]
    pub(super) fn authorization(&self) -> Option<&hyper::header::HeaderValue> {
        self.0.authorization()
    }

    /// A stream of bytes to the producer, encrypted unless the address is plain HTTP.
    #[cfg(feature = "grpc")]
    pub(super) async fn stream(&self) -> Result<Box<dyn ByteStream>, DialError> {
        self.0.stream().await.map_err(|error| self.error(error))
    }

    pub(super) fn address(&self) -> &HttpAddress {
        self.0.address()
    }

    pub(super) async fn connect(&self) -> Result<CallConnection, DialError> {
        self.0.connect().await.map_err(|error| self.error(error))
    }

    /// Sends a request, on this connection or on a new one, and follows one redirect.
    pub(super) async fn call(
        &self,
        on: Option<CallConnection>,
        call: &HttpCall,
    ) -> Result<CallAnswer, DialError> {
        let answer = self.0.call(on, call).await.map_err(|error| self.error(error))?;
        if answer.response.status() != StatusCode::TEMPORARY_REDIRECT {
            return Ok(answer);
        }
        let location = answer.response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
        let to = location.and_then(|location| self.address().pointed_to(location));
        let to = to.ok_or_else(|| {
            let what = "It sends us to another host, which is not followed.";
            DialError::Violation(what.to_owned())
        })?;
        let call = HttpCall { path: to.path_and_query().to_owned(), ..call.clone() };
        let answer = self.0.call(None, &call).await.map_err(|error| self.error(error))?;
        if answer.response.status() == StatusCode::TEMPORARY_REDIRECT {
            return Err(DialError::Violation("It redirects without end.".to_owned()));
        }
        Ok(answer)
    }

    /// The next bytes of an answer, as they arrive; `None` at the end.
    pub(super) async fn next(
        &self,
        body: &mut AnswerBody,
    ) -> Option<Result<bytes::Bytes, DialError>> {
        let next = body.next().await?;
        Some(next.map_err(|error| self.error(error)))
    }

    /// Reads the whole body of an answer, within a limit.
    pub(super) async fn read(
        &self,
        answer: CallAnswer,
        max_bytes: usize,
    ) -> Result<String, DialError> {
        let patience = self.0.options().answer_timeout;
        let whole = timeout(patience, answer.body().whole(max_bytes)).await;
        let whole = whole.map_err(|_| DialError::TooSlow)?.map_err(|error| self.error(error))?;
        String::from_utf8(whole)
            .map_err(|_| DialError::Violation("Its answer is not UTF-8.".to_owned()))
    }

    /// The error for a response that is not a success.
    pub(super) async fn refusal(&self, answer: CallAnswer) -> DialError {
        let status = answer.response.status();
        // A body that cannot be read counts as empty.
        let body = self.read(answer, MAX_REFUSAL_BYTES).await.unwrap_or_default();
        let said: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
        refused(status, &said).unwrap_or_else(|| {
            let reason = reason(&said).unwrap_or_default();
            DialError::Status { status: status.as_u16(), reason }
        })
    }

    fn error(&self, error: CallError) -> DialError {
        dial_error(self.address(), error)
    }
}

/// The error of a link whose request got no answer.
fn dial_error(address: &HttpAddress, error: CallError) -> DialError {
    match error {
        CallError::PlainHttp => DialError::PlainHttp(address.authority()),
        CallError::Token => DialError::Bearer,
        CallError::Lookup(_) | CallError::NoAddress | CallError::Connect(_) => {
            DialError::Unreachable { place: address.authority(), why: error.to_string() }
        }
        CallError::NoRoots => DialError::NoRoots,
        CallError::Tls(error) => DialError::Tls(error.to_string()),
        CallError::TooSlowToConnect | CallError::TooSlowToAnswer => DialError::TooSlow,
        CallError::Request => DialError::Violation("Its address cannot be asked for.".to_owned()),
        CallError::TooLarge => DialError::Violation("Its answer is too long.".to_owned()),
        CallError::CutOff(_) | CallError::NotHttp(_) | CallError::Strange(_) => {
            DialError::Cut(error.to_string())
        }
    }
}

/// The refusal that a status means: the caller is not let in.
pub(super) fn refused(status: StatusCode, said: &serde_json::Value) -> Option<DialError> {
    let is_refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
    is_refused.then(|| {
        let reason = reason(said);
        DialError::Refused {
            reason: reason.unwrap_or_else(|| format!("Status {}.", status.as_u16())),
        }
    })
}

/// The words of a refusal, in our form or in that of the specification.
pub(super) fn reason(said: &serde_json::Value) -> Option<String> {
    let words = ["message", "reason_message"].iter().find_map(|name| said.get(*name)?.as_str());
    words.map(|words| words.chars().take(MAX_REASON_CHARS).collect())
}
