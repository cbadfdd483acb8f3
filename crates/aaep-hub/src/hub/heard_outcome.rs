//! How an ask ended, for a person who may hear it but whose program did not ask it.
//!
//! The person learns what a subscriber would have been told: the outcome and what decided it, never the words
//! of an answer. No other principal learns the outcome of an ask that it did not publish.

use aaep::ReplyToken;

use super::settlement::Settlement;
use super::{Hub, HubError, PublishedAskState};
use crate::access::{Principal, Scope};
use crate::store::ReadError;

impl Hub {
    /// Looks up a settled ask in a session that the person may hear. In every other case the ask is reported as
    /// not found.
    pub(super) async fn heard_outcome(
        &self,
        principal: &Principal,
        reply_token: &ReplyToken,
    ) -> Result<PublishedAskState, HubError> {
        if !(principal.is_person() && principal.scopes.has(Scope::Listen)) {
            return Err(HubError::NoSuchAsk);
        }
        let (reader, token) = (self.reader().clone(), reply_token.clone());
        let found = tokio::task::spawn_blocking(move || {
            let stored = reader.settled(&token)?.and_then(|it| it.resolution);
            let found = stored.and_then(|stored| Settlement::from_stored(&token, &stored));
            let Some((asked, settlement)) = found else { return Ok(None) };
            let session = reader.session(&asked.session_id)?;
            Ok::<_, ReadError>(session.map(|session| (asked, settlement, session)))
        });
        let found = found.await.map_err(|_| HubError::Stopped)?;
        let found = found.map_err(|error| HubError::NotStored { why: Some(error.to_string()) })?;
        let (asked, settlement, session) = found.ok_or(HubError::NoSuchAsk)?;
        let hearing = principal.hearing();
        let may_hear =
            self.look_up(move |owner| hearing.includes(&owner.agent_of(&session).tags)).await?;
        if !may_hear {
            return Err(HubError::NoSuchAsk);
        }
        Ok(PublishedAskState {
            event_id: asked.event_id,
            session_id: asked.session_id,
            ends_unix_us: None,
            settlement: Some(Settlement { response: None, ..settlement }),
        })
    }
}
