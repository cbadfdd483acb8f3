//! What a server over HTTP wants to read in the head of a request, from the message in its body.

use std::collections::BTreeMap;

use serde_json::Value;

use super::message::is_stateless;

/// The most tools whose parameters are mirrored, and the most of one tool.
const MAX_TOOLS: usize = 1024;
const MAX_PARAMETERS: usize = 32;
const MAX_DEPTH: usize = 8;

/// The largest whole number that every program reads as the same.
const MAX_WHOLE: i64 = (1 << 53) - 1;

/// What has to be known of a connection for the heads of its requests.
#[derive(Debug, Clone, Default)]
pub struct HttpHeads {
    /// The version that both sides agreed on in the handshake.
    version: Option<String>,
    /// The session that the server gave.
    session: Option<String>,
    /// For each tool, the parameters that also stand in the head: their names there, and where they are.
    mirrored: BTreeMap<String, Vec<(String, Vec<String>)>>,
}

impl HttpHeads {
    /// Takes over the session from the answer to `initialize`.
    pub fn set_session(&mut self, session: Option<&str>) {
        self.session = session.map(str::to_owned);
    }

    /// The session, if the server gave one.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Learns from a message of the server.
    pub fn hear_server(&mut self, message: &Value) {
        let result = &message["result"];
        let is_handshake =
            result.get("serverInfo").is_some() && result.get("capabilities").is_some();
        if let Some(version) = result["protocolVersion"].as_str().filter(|_| is_handshake) {
            self.version = Some(version.to_owned());
        }
        for tool in result["tools"].as_array().into_iter().flatten() {
            let Some(name) = tool["name"].as_str() else { continue };
            let mut found = Vec::new();
            mirrored_in(&tool["inputSchema"], &mut Vec::new(), &mut found);
            if found.is_empty() {
                self.mirrored.remove(name);
            } else if self.mirrored.len() < MAX_TOOLS {
                self.mirrored.insert(name.to_owned(), found);
            }
        }
    }

    /// The headers of a request that carries this message, besides those that every request has.
    pub fn of(&self, message: &Value) -> Vec<(String, String)> {
        let mut heads = Vec::new();
        let params = &message["params"];
        let method = message["method"].as_str().unwrap_or_default();
        if method != "initialize"
            && let Some(session) = &self.session
        {
            heads.push(("mcp-session-id".to_owned(), session.clone()));
        }
        if !is_stateless(params) {
            if method != "initialize"
                && let Some(version) = &self.version
            {
                heads.push(("mcp-protocol-version".to_owned(), in_head(version)));
            }
            return heads;
        }
        let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
        heads.push(("mcp-protocol-version".to_owned(), in_head(version.unwrap_or_default())));
        heads.push(("mcp-method".to_owned(), in_head(method)));
        let name = match method {
            "tools/call" | "prompts/get" => params["name"].as_str(),
            "resources/read" => params["uri"].as_str(),
            _ => None,
        };
        if let Some(name) = name {
            heads.push(("mcp-name".to_owned(), in_head(name)));
        }
        if method == "tools/call"
            && let Some(mirrored) = name.and_then(|it| self.mirrored.get(it))
        {
            heads.extend(mirrored.iter().filter_map(|(head, path)| {
                let mut value = &params["arguments"];
                for step in path {
                    value = value.get(step)?;
                }
                Some((format!("mcp-param-{head}"), in_head(&plain(value)?)))
            }));
        }
        heads
    }
}

/// Finds the parameters that also stand in the head.
fn mirrored_in(schema: &Value, path: &mut Vec<String>, found: &mut Vec<(String, Vec<String>)>) {
    let Some(properties) = schema["properties"].as_object().filter(|_| path.len() < MAX_DEPTH)
    else {
        return;
    };
    for (name, property) in properties {
        path.push(name.clone());
        let head = property["x-mcp-header"].as_str().map(str::to_ascii_lowercase);
        let is_plain = matches!(property["type"].as_str(), Some("string" | "integer" | "boolean"));
        if let Some(head) = head.filter(|it| is_plain && is_header_name(it))
            && found.len() < MAX_PARAMETERS
            && found.iter().all(|(it, _)| *it != head)
        {
            found.push((head, path.clone()));
        }
        mirrored_in(property, path, found);
        path.pop();
    }
}

fn is_header_name(name: &str) -> bool {
    let is_allowed = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it);
    !name.is_empty() && name.len() <= 100 && name.bytes().all(is_allowed)
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(is) => Some(is.to_string()),
        Value::Number(number) => {
            let whole = number.as_i64().filter(|it| it.abs() <= MAX_WHOLE)?;
            Some(whole.to_string())
        }
        _ => None,
    }
}

/// A text as it can stand in a head: as it is, or encoded.
fn in_head(text: &str) -> String {
    let is_plain = text.bytes().all(|it| matches!(it, 0x20..=0x7e | b'\t'));
    let is_bare = text.trim() == text && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if is_plain && is_bare {
        text.to_owned()
    } else {
        format!("=?base64?{}?=", base64(text.as_bytes()))
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let all = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(all >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(arguments: &Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "query", "arguments": arguments,
            "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } } })
    }

    #[test]
    fn a_request_without_a_handshake_says_in_its_head_what_it_is() {
        let mut heads = HttpHeads::default();
        heads.hear_server(&json!({ "result": { "tools": [{ "name": "query", "inputSchema": {
            "properties": {
                "region": { "type": "string", "x-mcp-header": "Region" },
                "rate": { "type": "number", "x-mcp-header": "Rate" },
                "deep": { "type": "object", "properties": {
                    "level": { "type": "integer", "x-mcp-header": "Level" } } },
                "bad": { "type": "string", "x-mcp-header": "a\r\nb" },
            } } }] } }));
        let arguments =
            json!({ "region": "Zürich", "rate": 1.5, "deep": { "level": 3 }, "bad": "x" });
        let named = |it: &str, value: &str| (it.to_owned(), value.to_owned());
        assert_eq!(
            heads.of(&call(&arguments)),
            [
                named("mcp-protocol-version", "2026-07-28"),
                named("mcp-method", "tools/call"),
                named("mcp-name", "query"),
                named("mcp-param-level", "3"),
                named("mcp-param-region", "=?base64?WsO8cmljaA==?="),
            ]
        );
    }

    #[test]
    fn after_a_handshake_the_session_and_the_version_are_in_every_head() {
        let mut heads = HttpHeads::default();
        let initialize = json!({ "id": 0, "method": "initialize", "params": {} });
        assert_eq!(heads.of(&initialize), []);
        heads.hear_server(&json!({ "id": 0, "result": { "protocolVersion": "2025-11-25",
            "serverInfo": { "name": "x" }, "capabilities": {} } }));
        heads.set_session(Some("abc"));
        let names: Vec<String> = heads
            .of(&json!({ "id": 1, "method": "tools/list" }))
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["mcp-session-id", "mcp-protocol-version"]);
    }

    #[test]
    fn no_text_can_begin_a_header_of_its_own() {
        for (text, head) in [
            ("us-west1", "us-west1"),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("", ""),
        ] {
            assert_eq!(in_head(text), head);
        }
    }
}
