//! Publishes one event of a child.

use std::time::Duration;

use aaep::Object;
use tokio::time::sleep;

use crate::access::{LimitError, Principal};
use crate::hub::{Hub, HubError, Published, Refused};

/// How often publishing is repeated when the hub could not store an event in time.
const MAX_TRIES: u32 = 5;

/// The pause before each repetition.
const PAUSE: Duration = Duration::from_secs(1);

/// Publishes an event. A child that publishes too fast is slowed down, because nothing is read from it in
/// the meantime. If the event could not be stored, it is published again only if that is harmless:
/// `may_repeat`.
pub(super) async fn publish(
    hub: &Hub,
    principal: &Principal,
    event: Object,
    may_repeat: bool,
) -> Result<Published, String> {
    let mut tries = 0;
    loop {
        match hub.publish(principal, vec![event.clone()], None).await {
            Ok(mut outcomes) => match outcomes.pop() {
                Some(Err(Refused::Limit(LimitError::PublishRate { retry_after_ms }))) => {
                    sleep(Duration::from_millis(retry_after_ms.max(1))).await;
                }
                Some(outcome) => return outcome.map_err(|refused| refused.to_string()),
                None => return Err("The hub gave no answer.".to_owned()),
            },
            Err(HubError::NotStored { .. } | HubError::NotTaken { .. })
                if may_repeat && tries < MAX_TRIES =>
            {
                tries += 1;
                sleep(PAUSE).await;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}
