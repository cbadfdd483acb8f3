//! The built-in forms of secrets.
//!
//! Each pattern begins with distinctive letters, so that one pass can tell that none matches. If a group is
//! named `secret`, the rest of the match stays, so that people still hear what it was for.

use regex::Captures;

use super::judge;

/// One form of secrets.
pub(super) struct SecretPattern {
    pub(super) regex: &'static str,
    pub(super) judge: fn(&Captures<'_>) -> bool,
}

/// Secrets that can be recognized by their form, or by the name next to them.
pub(super) const BUILT_IN: &[SecretPattern] = &[
    // Keys of services, recognized by their prefix.
    SecretPattern { regex: r"(?-u:\b)sk-[A-Za-z0-9_-]{16,}", judge: judge::has_digit },
    SecretPattern { regex: r"(?-u:\b)[rs]k_(?:live|test)_[A-Za-z0-9]{16,}", judge: judge::always },
    SecretPattern { regex: r"(?-u:\b)whsec_[A-Za-z0-9+/=]{16,}", judge: judge::always },
    SecretPattern { regex: r"(?-u:\b)gh[oprsu]_[A-Za-z0-9]{20,}", judge: judge::always },
    SecretPattern { regex: r"(?-u:\b)github_pat_[A-Za-z0-9_]{20,}", judge: judge::always },
    SecretPattern {
        regex: r"(?-u:\b)gl(?:pat|rt|dt|ptt|soat)-[A-Za-z0-9_-]{16,}",
        judge: judge::always,
    },
    SecretPattern { regex: r"(?-u:\b)xox[abeprs]-[A-Za-z0-9-]{10,}", judge: judge::has_digit },
    SecretPattern { regex: r"(?-u:\b)xapp-[A-Za-z0-9-]{16,}", judge: judge::has_digit },
    SecretPattern { regex: r"(?-u:\b)(?:AKIA|ASIA)[0-9A-Z]{16}(?-u:\b)", judge: judge::always },
    SecretPattern { regex: r"(?-u:\b)AIza[0-9A-Za-z_-]{35}", judge: judge::always },
    SecretPattern { regex: r"(?-u:\b)ya29\.[0-9A-Za-z_-]{20,}", judge: judge::always },
    SecretPattern { regex: r"(?-u:\b)GOCSPX-[0-9A-Za-z_-]{20,}", judge: judge::always },
    SecretPattern { regex: r"(?-u:\b)npm_[A-Za-z0-9]{36}", judge: judge::always },
    SecretPattern { regex: r"(?-u:\b)pypi-[A-Za-z0-9_-]{50,}", judge: judge::always },
    SecretPattern { regex: r"(?-u:\b)hf_[A-Za-z0-9]{30,}", judge: judge::always },
    SecretPattern { regex: r"(?-u:\b)dop_v1_[a-f0-9]{64}", judge: judge::always },
    SecretPattern {
        regex: r"(?-u:\b)SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
        judge: judge::always,
    },
    SecretPattern { regex: r"(?-u:\b)aaep(?:-person)?_[A-Za-z0-9_-]{43}", judge: judge::always },
    // Signed and encrypted tokens of RFC 7519, which begin with a JSON object in base64.
    SecretPattern {
        regex: r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+){1,4}\.?",
        judge: judge::always,
    },
    // Private keys, up to their end or that of the text.
    SecretPattern {
        regex: r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\z)",
        judge: judge::always,
    },
    // The password in an address, for example of a database.
    SecretPattern {
        regex: r#"://[^\s/?#@:"'<>]*:(?P<secret>[^\s/?#"'<>]+)@"#,
        judge: judge::is_not_placeholder,
    },
    // Credentials in HTTP headers.
    SecretPattern {
        regex: r#"(?i-u:authorization)\\{0,2}["']?\s{0,3}[:=]\s{0,3}\\{0,2}["']?(?i-u:bearer|basic|digest|token|negotiate)\s+(?P<secret>[^\s"',;\\]+)"#,
        judge: judge::is_not_word,
    },
    SecretPattern {
        regex: r#"(?i-u:authorization)\\{0,2}["']?\s{0,3}[:=]\s{0,3}\\{0,2}["']?(?P<secret>[^\s"',;\\]{8,})"#,
        judge: judge::is_not_word,
    },
    SecretPattern {
        regex: r"(?i-u:\bbearer)\s+(?P<secret>[A-Za-z0-9._~+/=-]{16,})",
        judge: judge::is_not_word,
    },
    // A name and its value: password=…, "api_key": "…", TOKEN: …
    SecretPattern {
        regex: r#"(?P<name>(?i-u:passwords?|passwd|passphrase|pwd|secrets?|api[_-]?keys?|(?:access|account|private|secret|auth|signing|encryption|master)[_-]?keys?|tokens?|credentials?))\\{0,2}["']?(?P<sep>[ \t]{0,2}(?::=|=>|=|:)[ \t]{0,3})(?P<secret>[^\s"'`&;,)\]}|\\]+)"#,
        judge: judge::is_value,
    },
    SecretPattern {
        regex: r#"(?P<name>(?i-u:passwords?|passwd|passphrase|pwd|secrets?|api[_-]?keys?|(?:access|account|private|secret|auth|signing|encryption|master)[_-]?keys?|tokens?|credentials?))\\{0,2}["']?[ \t]{0,2}(?::=|=>|=|:)[ \t]{0,3}\\{0,2}["'`](?P<secret>[^"'`\\\n]+)"#,
        judge: judge::is_quoted_value,
    },
    // A name and its value on a command line.
    SecretPattern {
        regex: r#"--?(?i-u:password|passwd|passphrase|token|secret|api-?key|access-?key|secret-?key)[ \t]+["']?(?P<secret>[^\s"']+)"#,
        judge: judge::is_not_word,
    },
    // In a sentence: the token is …, your API key …
    SecretPattern {
        regex: r#"(?i-u:passwords?|passphrase|secrets?|tokens?|(?:api|access|private|secret|signing|encryption|account)[ _-]?keys?|credentials?)\s{1,3}(?:(?i-u:is|was|are|of|to|now)\s{1,3}){0,2}[:=]?\s{0,3}["'`(]?(?P<secret>[A-Za-z0-9_+/=.~-]{16,})"#,
        judge: judge::is_random,
    },
];
