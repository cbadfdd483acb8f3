//! Questions at which an agent without a window ends, so that the person can answer hours later.
//!
//! An answer counts for the same call of the same session with exactly the same arguments, once, and while the question
//! can be answered. Everything else is asked again.

use serde_json::Value;

use super::HookHandler;
use crate::dialect::ToolUse;
use crate::gate::LaterAsk;
use crate::memory::OpenQuestion;
use crate::tools::ToolRequest;

const HOUR_SECONDS: u64 = 3600;
const DAY_HOURS: u8 = 24;

impl HookHandler<'_> {
    /// Lets a question stay open when the agent ends at it. Finds the question if the agent ended at it before.
    pub(super) fn later(
        &mut self,
        request: &ToolRequest,
        tool: &ToolUse,
        question: &mut Value,
    ) -> Option<LaterAsk> {
        let earlier = self.memory.left_open.remove(&tool.id);
        let now_ms = self.setup.now_ms;
        let is_same = |it: &OpenQuestion| {
            it.digest == request.digest
                && it.until_ms > now_ms
                && it.event["session_id"] == question["session_id"]
        };
        let can_end = !self.setup.has_window && !tool.id.is_empty();
        let hours = self.setup.later_hours.filter(|_| can_end);
        let earlier = match earlier {
            Some(earlier) if hours.is_some() && is_same(&earlier) => Some(earlier),
            other => {
                self.plan.withdrawn.extend(other.map(|it| it.reply_token()));
                None
            }
        };
        let seconds = u64::from(hours?.clamp(1, DAY_HOURS)) * HOUR_SECONDS;
        let ours = &mut question["extensions"][aaep::extension::PREFIX];
        ours["stays_open"] = true.into();
        ours["max_timeout_seconds"] = seconds.into();
        question["timeout_seconds"] = seconds.into();
        let until_ms = now_ms.saturating_add_unsigned(seconds * 1000);
        let name = self.dialect.name();
        let session = &self.call.message.session;
        let consequence = question["consequence"].as_str().unwrap_or_default();
        let how = format!(
            "{consequence} You can answer later: after a minute {name} ends, and goes on with: claude -p --resume {session}"
        );
        question["consequence"] = how.into();
        let words = format!("{name} has ended. Its question stays open.");
        Some(LaterAsk {
            call: tool.id.clone(),
            until_ms: earlier.as_ref().map_or(until_ms, |it| it.until_ms),
            earlier: earlier.map(|it| it.event),
            ends: self.voice().progress(&words),
        })
    }
}
