//! A capture to measure with: complete sessions of twenty events, with all twelve types and about
//! 500 bytes per event.

use std::fmt::Write;

/// The number of events in a session.
const STEPS: u64 = 20;

/// The approximate length of an event in bytes.
const LENGTH: usize = 500;

/// The time of the first event, in milliseconds since the Unix epoch.
const START_MS: i64 = 1_773_045_600_000;

/// A language and sample text in it.
struct CaptureLanguage {
    tag: &'static str,
    words: &'static str,
}

const TONGUES: [CaptureLanguage; 3] = [
    CaptureLanguage {
        tag: "en-GB",
        words: "The list of trains is open and the agent reads it from the top. Three of them are \
            late, one runs on Sundays only, and the last one has a coach with a ramp. Seats near \
            the door are free, the ticket costs less before nine, and the change in Leeds takes \
            twelve minutes on foot. Nothing has been booked so far and nothing will be without a \
            yes from you. The search goes on with the buses that meet the train.",
    },
    CaptureLanguage {
        tag: "de",
        words: "Die Liste der Züge ist offen, und der Agent liest sie von oben nach unten. Drei \
            haben Verspätung, einer fährt nur sonntags, und der letzte hat einen Wagen mit Rampe. \
            Plätze an der Tür sind frei, vor neun Uhr ist die Fahrkarte günstiger, und das \
            Umsteigen in Köln dauert zu Fuß zwölf Minuten. Gebucht ist noch nichts, und ohne ein \
            Ja wird auch nichts gebucht. Als Nächstes kommen die Busse an die Reihe.",
    },
    CaptureLanguage {
        tag: "es-419",
        words: "La lista de trenes está abierta y el agente la lee desde el principio. Tres llevan \
            retraso, uno circula solo los domingos y el último tiene un vagón con rampa. Quedan \
            asientos junto a la puerta, el billete cuesta menos antes de las nueve y el trasbordo \
            lleva doce minutos a pie. Todavía no se ha comprado nada y no se comprará sin un sí. \
            La búsqueda continúa con los autobuses que esperan al tren.",
    },
];

/// The subject of a session, so that its events belong together.
struct CapturedSession {
    number: u64,
    language: &'static CaptureLanguage,
}

impl CapturedSession {
    fn of(number: u64) -> Self {
        let language = match number % 8 {
            3 => &TONGUES[1],
            6 => &TONGUES[2],
            _ => &TONGUES[0],
        };
        CapturedSession { number, language }
    }

    /// Words of about this many bytes, never more, starting at a place that depends on the seed.
    fn words(&self, seed: u64, bytes: usize) -> String {
        let words = self.language.words;
        let starts: Vec<usize> = words.match_indices(' ').map(|(at, _)| at + 1).collect();
        let at = usize::try_from(seed).unwrap_or_default() % starts.len();
        let endless = words[starts[at]..].chars().chain([' ']).chain(words.chars().cycle());
        let mut text = String::with_capacity(bytes + 4);
        for c in endless {
            if text.len() + c.len_utf8() > bytes {
                break;
            }
            text.push(c);
        }
        text
    }

    /// The chunk of output at this step of the session.
    fn chunk(&self, step: u64) -> String {
        self.words(self.number * 3 + step, 95)
    }

    /// The type of the event at this step, and its own fields as JSON.
    fn payload(&self, step: u64) -> (&'static str, String) {
        let number = self.number;
        let terse = self.words(number + step * 5, 24);
        let summary = format!(r#""summary_terse":"{terse}""#);
        let normal = format!(r#""summary_normal":"{}""#, self.words(number * 7 + step, 60));
        let tool = ["timetable.search", "seats_lookup", "notes.read"][(number % 3) as usize];
        let call = format!(r#""tool":"{tool}","tool_call_id":"call_{number:x}s{}""#, step / 7);
        let state = |from, to| {
            let text = format!(r#""from_state":"{from}","to_state":"{to}",{summary}"#);
            ("aaep:agent.state.changed", text)
        };
        match step {
            0 => (
                "aaep:agent.session.started",
                format!(
                    r#"{normal},"tools_available":["timetable.search","seats_lookup","notes.read"]"#
                ),
            ),
            1 => state("idle", "thinking"),
            2 => state("thinking", "calling_tool"),
            3 | 11 => (
                "aaep:agent.tool.invoked",
                format!(
                    r#"{call},{normal},"expected_duration_ms":{},"risk_level":"low""#,
                    40 + step
                ),
            ),
            4 | 5 => (
                "aaep:agent.progress.updated",
                format!(
                    r#""progress":{{"percent":{}.5,"step":{step},"total_steps":6}},{summary}"#,
                    step * 13
                ),
            ),
            6 | 12 => (
                "aaep:agent.tool.completed",
                format!(
                    r#"{call},"status":"success","duration_ms":{},{normal}"#,
                    300 + number % 90
                ),
            ),
            7 => state("calling_tool", "awaiting_input"),
            8 => (
                "aaep:agent.awaiting.confirmation",
                format!(
                    r#""action":"{terse}","consequence":"{}","reply_token":"rpl_{number:x}c","timeout_seconds":90,"default_decision":"reject""#,
                    self.words(number, 40)
                ),
            ),
            9 if number.is_multiple_of(5) => (
                "aaep:agent.handoff.requested",
                format!(r#""reason":"{terse}","target_kind":"human","urgency_for_handoff":"low""#),
            ),
            9 => (
                "aaep:agent.awaiting.clarification",
                format!(
                    r#""question":"{terse}","reply_token":"rpl_{number:x}q","timeout_seconds":60,"accepted_response_kinds":["yes_no"]"#
                ),
            ),
            10 => state("awaiting_input", "calling_tool"),
            13 => state("calling_tool", "writing_output"),
            14..=17 => {
                let before: usize = (14..step).map(|step| self.chunk(step).chars().count()).sum();
                let text = format!(
                    r#""chunk":"{}\n","position":{},"complete":{},"coalesce_hint":"sentence","output_id":"out_{number:x}""#,
                    self.chunk(step),
                    // Each earlier chunk ends with a line break of its own.
                    before + (14..step).count(),
                    step == 17,
                );
                ("aaep:agent.output.streaming", text)
            }
            18 => state("writing_output", "idle"),
            _ => self.end(&normal),
        }
    }

    fn end(&self, normal: &str) -> (&'static str, String) {
        match self.number % 10 {
            4 => (
                "aaep:agent.session.errored",
                format!(
                    r#""error_category":"transient","error_code":"TIMETABLE_DOWN","recoverable":true,{normal}"#
                ),
            ),
            7 => (
                "aaep:agent.session.cancelled",
                format!(r#""cancelled_by":"user","cancellation_reason":"pressed_escape",{normal}"#),
            ),
            _ => (
                "aaep:agent.session.completed",
                format!(r#""duration_ms":48100,"tool_invocations_count":2,{normal}"#),
            ),
        }
    }
}

/// Appends the event with this number, counted from 0, and a line break.
pub(crate) fn push_event(out: &mut String, number: u64) {
    let session = CapturedSession::of(number / STEPS);
    let step = number % STEPS;
    let (name, payload) = session.payload(step);
    let start = out.len();
    let is_critical = matches!(step, 8 | 9) || name.ends_with("errored");
    let urgency = if is_critical { r#""urgency":"critical","# } else { "" };
    let moment = i64::try_from(number)
        .ok()
        .and_then(|number| aaep::Timestamp::from_unix_ms(START_MS + number * 137));
    let timestamp = moment.as_ref().map_or("", |moment| moment.as_str());
    let written = write!(
        out,
        concat!(
            r#"{{"@context":"{}","type":"{}","event_id":"evt_{:016x}","#,
            r#""session_id":"sess_{:08x}","sequence_number":{},"timestamp":"{}","#,
            r#""producer":{{"agent_id":"travel-desk","agent_version":"1.7.2"}},{}"#,
            r#""localization_hints":{{"primary_language":"{}"}},{}"#,
        ),
        aaep::CORE_CONTEXT,
        name,
        number,
        session.number,
        step,
        timestamp,
        urgency,
        session.language.tag,
        payload,
    );
    debug_assert!(written.is_ok(), "a String takes everything");
    if !name.ends_with("streaming") {
        let spread = usize::try_from(number * 7 % 81).unwrap_or_default();
        let room = (LENGTH + spread).saturating_sub(40 + out.len() - start + 24);
        let detail = session.words(number, room.max(8));
        out.push_str(r#","summary_detailed":""#);
        out.push_str(&detail);
        out.push('"');
    }
    out.push_str("}\n");
}

/// An event that every validator must reject: it has nothing but its type.
pub(crate) const WRONG_EVENT: &str = "{\"type\":\"aaep:agent.tool.invoked\"}\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_holds_valid_events_of_all_types_and_about_500_bytes() {
        let mut text = String::new();
        let count = 20 * STEPS;
        (0..count).for_each(|number| push_event(&mut text, number));
        let mut types = std::collections::BTreeSet::new();
        for line in text.lines() {
            let reading = aaep::read(line.as_bytes(), aaep::Mode::Strict);
            assert_eq!(reading.violations, [], "{line}");
            let Some(aaep::Message::Event(event)) = reading.message else { panic!("{line}") };
            types.insert(event.payload.event_type().as_str().to_owned());
        }
        assert_eq!(types.len(), 12);
        let mean = text.len() / usize::try_from(count).expect("few");
        assert!((480..520).contains(&mean), "{mean}");
    }

    #[test]
    fn the_wrong_event_is_wrong() {
        assert!(!aaep::read(WRONG_EVENT.as_bytes(), aaep::Mode::Tolerant).is_valid());
    }
}
