//! Where a page of sessions ended, so that the next page continues there, whatever happened in between.
//!
//! Clients get it as text and only hand it back. It is never a credential.

use std::fmt;
use std::str::FromStr;

use crate::store::session::StoredSession;
use crate::store::table::{pair, sortable};

/// A position in the list of sessions: running sessions first, then ended ones, the newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionCursor(pub(super) SessionPosition);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionPosition {
    /// After the running session with this number.
    Running(u64),
    /// After the ended session with this key.
    Ended([u8; 16]),
}

impl SessionCursor {
    /// The position after this session.
    pub fn after(session: &StoredSession) -> Self {
        SessionCursor(match session.ended_unix_us {
            None => SessionPosition::Running(session.number),
            Some(ended) => SessionPosition::Ended(pair(sortable(ended), session.number)),
        })
    }
}

impl fmt::Display for SessionCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SessionPosition::Running(number) => write!(f, "running-{number:016x}"),
            SessionPosition::Ended(key) => write!(f, "ended-{:032x}", u128::from_be_bytes(key)),
        }
    }
}

impl FromStr for SessionCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_hex = |digits: &str, count: usize| {
            digits.len() == count
                && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let place = match text.split_once('-') {
            Some(("running", digits)) if is_hex(digits, 16) => {
                SessionPosition::Running(u64::from_str_radix(digits, 16).map_err(|_| ())?)
            }
            Some(("ended", digits)) if is_hex(digits, 32) => {
                let key = u128::from_str_radix(digits, 16).map_err(|_| ())?;
                SessionPosition::Ended(key.to_be_bytes())
            }
            _ => return Err(()),
        };
        Ok(SessionCursor(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_being_handed_out() {
        for place in [
            SessionPosition::Running(0),
            SessionPosition::Running(u64::MAX),
            SessionPosition::Ended(pair(sortable(-1), 7)),
            SessionPosition::Ended([255; 16]),
        ] {
            let cursor = SessionCursor(place);
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for wrong in ["", "running-", "running-+000000000000001", "ended-00", "later-0", "running"]
        {
            assert_eq!(wrong.parse::<SessionCursor>(), Err(()), "{wrong}");
        }
    }
}
