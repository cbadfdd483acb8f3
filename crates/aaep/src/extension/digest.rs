//! The exact action that was accepted: one digest for a tool and its arguments, the same in every
//! programming language.
//!
//! The digest is SHA-256 over the canonical JSON (RFC 8785) of an object with the members `args`
//! and `tool`. `docs/extension.md` describes it step by step with test vectors. Numbers from 2^53
//! on are refused, because languages round them differently, and two different amounts must never
//! share a digest. Nothing here knows whether a digest was accepted.

use std::fmt;

use serde_json::{Number, Value as Json};
use sha2::{Digest, Sha256};

use super::PREFIX;
use crate::event::Event;
use crate::form::{Prefix, ToolName, form};

/// How deep arguments may nest.
pub const MAX_ARGUMENT_DEPTH: usize = 64;

/// The first whole number that some languages cannot distinguish from the next one.
const UNSAFE: u64 = 1 << 53;

form! {
    /// The digest of an action: a tool with its arguments.
    ActionDigest, "sha-256: and 64 digits or letters from a to f",
    { "pattern": "^sha-256:[0-9a-f]{64}$" },
    |text| text.strip_prefix("sha-256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

impl ActionDigest {
    /// The digest as bytes.
    pub fn bytes(&self) -> [u8; 32] {
        let hex = self.as_str().trim_start_matches("sha-256:").as_bytes();
        let digit = |byte: u8| if byte <= b'9' { byte - b'0' } else { byte - b'a' + 10 };
        std::array::from_fn(|at| digit(hex[2 * at]) << 4 | digit(hex[2 * at + 1]))
    }
}

/// Why arguments have no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoDigest {
    /// The absolute value of a number is 2^53 or more. Write it as a string.
    NumberTooBig,
    /// Arrays and objects nest deeper than [`MAX_ARGUMENT_DEPTH`]. Flatten them.
    TooDeep,
}

impl fmt::Display for NoDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoDigest::NumberTooBig => f.write_str(
                "A number in the arguments is 2^53 or more, where languages differ. Write it as a \
                 string.",
            ),
            NoDigest::TooDeep => write!(
                f,
                "The arguments nest deeper than {MAX_ARGUMENT_DEPTH} levels. Flatten them."
            ),
        }
    }
}

impl std::error::Error for NoDigest {}

/// The digest of a tool with its arguments. A tool without arguments has an empty object.
///
/// ```
/// use aaep::ToolName;
/// use aaep::extension::action_digest;
///
/// let tool = ToolName::parse("delete").expect("a tool");
/// let digest = action_digest(&tool, &serde_json::json!({ "path": "/photos" })).expect("a digest");
/// assert_eq!(
///     digest.as_str(),
///     "sha-256:594372c2f13459b92bc12a6d5d7da2a14498b7a419a463540f06d1d515af0fb4"
/// );
/// ```
///
/// # Panics
/// Never: 64 hexadecimal digits are the form of a digest.
pub fn action_digest(tool: &ToolName, args: &Json) -> Result<ActionDigest, NoDigest> {
    let mut text = String::from("{\"args\":");
    write(args, MAX_ARGUMENT_DEPTH, &mut text)?;
    text.push_str(",\"tool\":");
    write_text(tool.as_str(), &mut text);
    text.push('}');
    let mut digest = String::from("sha-256:");
    for byte in Sha256::digest(text.as_bytes()) {
        digest.extend([u32::from(byte >> 4), u32::from(byte & 15)].map(hex));
    }
    Ok(ActionDigest::parse(&digest).expect("the form of a digest"))
}

/// The digest that an event states, if it can be read.
pub fn stated_digest(event: &Event) -> Option<ActionDigest> {
    let data = event.extensions.as_ref()?.0.get(&Prefix::parse(PREFIX).ok()?)?;
    ActionDigest::parse(data.get("action_digest")?.as_str()?).ok()
}

/// Writes a value in its canonical form: no spaces, keys sorted by UTF-16 code units.
fn write(value: &Json, depth: usize, out: &mut String) -> Result<(), NoDigest> {
    let below = || depth.checked_sub(1).ok_or(NoDigest::TooDeep);
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(is) => out.push_str(if *is { "true" } else { "false" }),
        Json::Number(number) => write_number(number, out)?,
        Json::String(text) => write_text(text, out),
        Json::Array(items) => {
            let below = below()?;
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, below, out)?;
            }
            out.push(']');
        }
        Json::Object(fields) => {
            let below = below()?;
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort_by(|one, other| one.encode_utf16().cmp(other.encode_utf16()));
            out.push('{');
            for (at, key) in keys.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_text(key, out);
                out.push(':');
                write(&fields[key], below, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

/// Writes a string. Only quotes, backslashes and control characters are escaped.
fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => {
                let code = u32::from(c);
                out.push_str("\\u00");
                out.extend([code >> 4, code & 15].map(hex));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A hexadecimal digit.
fn hex(digit: u32) -> char {
    char::from_digit(digit, 16).unwrap_or('0')
}

/// Writes a number as ECMAScript does.
fn write_number(number: &Number, out: &mut String) -> Result<(), NoDigest> {
    if let Some(whole) = number.as_i64() {
        if whole.unsigned_abs() >= UNSAFE {
            return Err(NoDigest::NumberTooBig);
        }
        out.push_str(&whole.to_string());
        return Ok(());
    }
    #[expect(clippy::cast_precision_loss, reason = "2^53 is exact as a double")]
    let float = number.as_f64().filter(|it| it.abs() < UNSAFE as f64);
    let float = float.ok_or(NoDigest::NumberTooBig)?;
    if float < 0.0 {
        out.push('-');
    }
    // The fewest digits that distinguish the number from its neighbours, and its power of ten.
    let text = format!("{:e}", float.abs());
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = digits.replace('.', "");
    let point = power.parse::<i32>().unwrap_or(0) + 1;
    match usize::try_from(point) {
        Ok(point) if point >= digits.len() => {
            out.push_str(&digits);
            out.extend(std::iter::repeat_n('0', point - digits.len()));
        }
        Ok(point) if point > 0 => {
            out.extend([&digits[..point], ".", &digits[point..]]);
        }
        _ if point > -6 => {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', point.unsigned_abs() as usize));
            out.push_str(&digits);
        }
        _ => {
            out.push_str(&digits[..1]);
            if digits.len() > 1 {
                out.extend([".", &digits[1..]]);
            }
            out.push('e');
            out.push_str(&(point - 1).to_string());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn digest(tool: &str, args: &Json) -> Result<String, NoDigest> {
        let tool = ToolName::parse(tool).expect("a tool");
        action_digest(&tool, args).map(|it| it.as_str().trim_start_matches("sha-256:").to_owned())
    }

    fn canonical(value: &Json) -> String {
        let mut text = String::new();
        write(value, MAX_ARGUMENT_DEPTH, &mut text).expect("a canonical form");
        text
    }

    /// The vectors of `docs/extension.md`, whose digests were computed with other tools.
    #[test]
    fn the_published_vectors_hold() {
        let page = include_str!("../../../../docs/extension.md");
        let odd = json!({"\u{20ac}": 5, "\r": 1, "\u{fb33}": 7, "1": 2, "\u{1f600}": 6, "\u{80}": 3, "\u{f6}": 4});
        let numbers: Json = serde_json::from_str(
            "[-0.0, -1, 1e-6, 0.0000001, 333333333.33333329, 9007199254740991]",
        )
        .expect("json");
        let payment = json!({ "to": ["a", 1, true, null], "note": "f\u{fc}r \u{1ecc}l\u{e1}\n", "amount": 4.50 });
        for (tool, args, expected) in [
            (
                "delete",
                json!({ "path": "/photos" }),
                "594372c2f13459b92bc12a6d5d7da2a14498b7a419a463540f06d1d515af0fb4",
            ),
            (
                "reboot",
                json!({}),
                "d69415d5ae826461af2aab431f27cceb1ec04769640f15ed62b2e537b67306db",
            ),
            (
                "transfer_funds",
                payment,
                "da793ae4cd2c1d5ab3a4deb79ac943f67789f0db03894a19d9c9d7cc2409fc13",
            ),
            ("sort", odd, "f478046b0b0f37d9b65ddb3eca06bd56a41574b2cd0c2fd9b835f9dafc4dc675"),
            (
                "numbers",
                numbers,
                "88a1d65407978ee57850c3474f7b4a5798d8cdc92ff54215651fa4a5e02fd643",
            ),
        ] {
            assert_eq!(digest(tool, &args).as_deref(), Ok(expected), "{tool}");
            assert!(page.contains(expected), "{tool} is not in the documentation");
        }
    }

    #[test]
    fn any_other_tool_or_argument_has_another_digest() {
        let base = digest("delete", &json!({ "path": "/photos" }));
        for (tool, args) in [
            ("Delete", json!({ "path": "/photos" })),
            ("delete", json!({ "path": "/photos/" })),
            ("delete", json!({ "path": ["/photos"] })),
            ("delete", json!({ "Path": "/photos" })),
            ("delete", json!({ "path": "/photos", "force": null })),
            ("delete", json!({})),
            ("delete", json!(null)),
        ] {
            assert_ne!(digest(tool, &args), base, "{tool} {args}");
        }
    }

    #[test]
    fn the_order_and_spelling_of_the_text_do_not_matter() {
        let one: Json = serde_json::from_str(r#"{"b": 1.0, "a": "\u00fc"}"#).expect("json");
        let other: Json = serde_json::from_str("{ \"a\":\"\u{fc}\", \"b\": 1e0 }").expect("json");
        assert_eq!(digest("x", &one), digest("x", &other));
        assert_eq!(canonical(&one), "{\"a\":\"\u{fc}\",\"b\":1}");
    }

    #[test]
    fn numbers_that_languages_round_have_no_digest() {
        for text in
            ["9007199254740992", "-9007199254740992", "18446744073709551615", "1e30", "-1e16"]
        {
            let number: Json = serde_json::from_str(text).expect("json");
            assert_eq!(
                digest("x", &json!({ "n": [number] })),
                Err(NoDigest::NumberTooBig),
                "{text}"
            );
        }
        assert!(digest("x", &json!(-9_007_199_254_740_991_i64)).is_ok());
    }

    #[test]
    fn arguments_without_a_bottom_are_refused_and_not_followed() {
        let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert!(digest("x", &nested(MAX_ARGUMENT_DEPTH)).is_ok());
        assert_eq!(digest("x", &nested(MAX_ARGUMENT_DEPTH + 1)), Err(NoDigest::TooDeep));
    }

    #[test]
    fn a_digest_is_read_only_in_its_one_form() {
        let hex = "0123456789abcdef".repeat(4);
        let digest = ActionDigest::parse(&format!("sha-256:{hex}")).expect("the form");
        assert_eq!(digest.bytes()[..3], [0x01, 0x23, 0x45]);
        assert_eq!(digest.bytes()[31], 0xef);
        for wrong in [
            hex.clone(),
            format!("sha256:{hex}"),
            format!("sha-256:{}", hex.to_uppercase()),
            format!("sha-256:{}", &hex[1..]),
            format!("sha-256:{hex}0"),
            format!("sha-256:sha-256:{hex}"),
        ] {
            assert!(ActionDigest::parse(&wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_number_is_read_back_as_it_was(bits in any::<u64>()) {
            let float = f64::from_bits(bits);
            prop_assume!(float.is_finite() && float.abs() < 9e15);
            let text = canonical(&json!(float));
            prop_assert_eq!(text.parse::<f64>().ok(), Some(if float == 0.0 { 0.0 } else { float }));
            prop_assert!(!text.contains('E') && !text.contains('+'));
        }

        #[test]
        fn a_text_is_read_back_as_it_was(text in any::<String>()) {
            let canonical = canonical(&json!(text));
            prop_assert_eq!(serde_json::from_str::<String>(&canonical).ok(), Some(text.clone()));
            prop_assert_eq!(canonical, serde_json::to_string(&text).expect("json"));
        }
    }
}
