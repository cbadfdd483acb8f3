//! Messages of the protocol: how they are read so that both sides understand the same, and the few that we write.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

/// Where requests say which version they speak, since there is no handshake any more.
const VERSION_FIELD: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_FIELD: &str = "io.modelcontextprotocol/clientInfo";

/// Reads a message that has only one meaning: an object that names a field twice is not read, because programs differ in
/// which of the two they believe, and neither is a line that some programs read as two.
pub(super) fn read_strictly(line: &[u8]) -> Option<Value> {
    let line = line.trim_ascii();
    if line.contains(&b'\r') {
        return None;
    }
    let mut reader = serde_json::Deserializer::from_slice(line);
    let value = OneMeaning.deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(value)
}

/// Whether a program that is less strict could find a tool call in a line that was not read. An escape can hide the
/// name of the method, and so can an encoding with zero bytes.
pub(super) fn could_be_call(line: &[u8]) -> bool {
    const CALL: &[u8] = b"tools/call";
    line.iter().any(|it| matches!(it, b'\\' | 0)) || line.windows(CALL.len()).any(|it| it == CALL)
}

struct OneMeaning;

impl<'de> DeserializeSeed<'de> for OneMeaning {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OneMeaning {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(OneMeaning)? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let value = fields.next_value_seed(OneMeaning)?;
            if all.insert(name, value).is_some() {
                return Err(A::Error::custom("a field is there twice"));
            }
        }
        Ok(Value::Object(all))
    }
}

/// Whether a request is of the revisions without a handshake.
pub(super) fn is_stateless(params: &Value) -> bool {
    params["_meta"].get(VERSION_FIELD).is_some()
}

/// What the client says of itself, in the request in which it says it.
pub(super) fn client_info(params: &Value) -> &Value {
    match params.get("clientInfo") {
        Some(info) => info,
        None => &params["_meta"][CLIENT_FIELD],
    }
}

/// A message as a line.
pub(super) fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// The answer to a tool call that did not reach the server: a result that a model can read.
pub(super) fn not_run(id: &Value, words: &str, is_stateless: bool) -> Value {
    let mut result = json!({ "content": [{ "type": "text", "text": words }], "isError": true });
    if is_stateless {
        result["resultType"] = "complete".into();
    }
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// The answer to a message that was not passed on.
pub(super) fn refused(id: &Value, code: i64, words: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": words } })
}

/// The answer to a request of the server.
pub(super) fn answer(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Says that a request is no longer of interest.
pub(super) fn cancelled(id: &Value, reason: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": id, "reason": reason } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_mean_two_things_is_not_read() {
        for twice in [
            r#"{"method":"ping","method":"tools/call"}"#,
            r#"{"params":{"name":"look","name":"delete"}}"#,
            r#"[{"id":1,"id":2}]"#,
            r#"{"a":1}{"b":2}"#,
            r#"{"name":"\ud800"}"#,
            r#"{"number":NaN}"#,
            "{\"method\":\"ping\",\"params\":\r{\"method\":\"tools/call\"}\r}",
        ] {
            assert_eq!(read_strictly(twice.as_bytes()), None, "{twice}");
        }
        let plain = r#" {"id":1.50,"list":[null,true,-3,"x"]} "#;
        let read = read_strictly(plain.as_bytes()).expect("JSON");
        assert_eq!(read, json!({ "id": 1.5, "list": [null, true, -3, "x"] }));
    }

    #[test]
    fn a_call_cannot_hide_in_what_is_not_read() {
        assert!(could_be_call(br#"{"method":"tools/call""#));
        assert!(could_be_call(br#"{"method":"tools\/call""#));
        assert!(could_be_call(br#"{"method":"\u0074ools/call""#));
        assert!(could_be_call(b"t\0o\0o\0l\0s\0"));
        assert!(!could_be_call(b"{\"method\":\"ping\""));
    }
}
