//! Versions of the specification (§12.1).

use std::cmp::Ordering;

use crate::form::{WrongForm, string_field};

/// A version such as `1.0.0` or `0.1.0-draft`, kept as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    text: Box<str>,
    numbers: [u64; 3],
}

/// The versions of AAEP that were published.
pub const PUBLISHED: &[&str] = &["0.1.0-draft", "1.0.0"];

impl Version {
    /// Parses the version; the error says what was expected.
    pub fn parse(text: &str) -> Result<Self, WrongForm> {
        let wrong = || WrongForm { name: "Version", expected: "a version such as 1.0.0" };
        let (core, pre) =
            text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
        let is_pre = |pre: &str| {
            !pre.is_empty()
                && pre.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        };
        if pre.is_some_and(|pre| !is_pre(pre)) {
            return Err(wrong());
        }
        let mut parts = core.split('.');
        let mut number = || {
            let part =
                parts.next().filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))?;
            part.parse::<u64>().ok()
        };
        let numbers = match (number(), number(), number()) {
            (Some(major), Some(minor), Some(patch)) => [major, minor, patch],
            _ => return Err(wrong()),
        };
        if parts.next().is_some() {
            return Err(wrong());
        }
        Ok(Version { text: text.into(), numbers })
    }

    /// The version 1.0.0, which every event states that its agent left without one.
    pub fn v1_0_0() -> Self {
        Version { text: "1.0.0".into(), numbers: [1, 0, 0] }
    }

    /// The version as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The major version: it grows with each breaking change.
    pub fn major(&self) -> u64 {
        self.numbers[0]
    }

    /// Whether it precedes a release, such as `1.0.0-rc.1`.
    pub fn is_pre_release(&self) -> bool {
        self.text.contains('-')
    }

    /// Whether this version was published (§3.4.4).
    pub fn is_published(&self) -> bool {
        PUBLISHED.contains(&self.as_str())
    }

    /// The order of releases. A pre-release comes before its release. Pre-releases of one version
    /// are not ordered among themselves, because nothing in the protocol needs it.
    pub fn cmp_release(&self, other: &Version) -> Ordering {
        self.numbers
            .cmp(&other.numbers)
            .then_with(|| other.is_pre_release().cmp(&self.is_pre_release()))
    }
}

string_field!(Version, "a version such as 1.0.0",
    { "pattern": "^[0-9]+\\.[0-9]+\\.[0-9]+(-[A-Za-z0-9.-]+)?$" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_the_pattern_says() {
        for right in ["1.0.0", "0.1.0-draft", "1.0.0-rc.1", "01.2.3", "10.20.30--"] {
            assert_eq!(Version::parse(right).expect(right).as_str(), right);
        }
        assert_eq!(Version::parse("1.0.0"), Ok(Version::v1_0_0()));
        for wrong in
            ["", "1", "1.0", "1.0.0.0", "v1.0.0", "1.0.x", "1.0.0-", "1.0.0-ä", "1..0", "+1.0.0"]
        {
            assert!(Version::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_pre_release_comes_before_its_release() {
        let version = |text| Version::parse(text).expect("version");
        assert_eq!(version("1.0.0-rc.1").cmp_release(&version("1.0.0")), Ordering::Less);
        assert_eq!(version("1.2.0").cmp_release(&version("1.10.0")), Ordering::Less);
        assert!(version("1.0.0").is_published());
        assert!(!version("7.0.0").is_published());
    }
}
