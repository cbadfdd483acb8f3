//! Who came in, what they may do, and which agents they hear (§10.3.2, ruling 14).
//!
//! A principal is the outcome of authentication. Nothing here decides whether a proof is good, and
//! nothing ever widens what a proof allows.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::access::AccessError;

/// How many agents a list of [`Hears`] may name.
pub const MAX_HEARS: usize = 256;
/// How many characters the name of a principal or of an agent may have.
pub const MAX_NAME_CHARS: usize = 256;

/// Somebody who was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Who it is, for owning subscriptions and for limits. It begins with the kind of proof, so that
    /// a name from an issuer can never be taken for a token or for the local user.
    pub id: String,
    /// How people call it. Not unique, and never compared.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// Which agents it hears.
    pub hears: Hears,
    /// Until when the proof is good, in microseconds since 1970 began; for good if absent.
    pub until_unix_us: Option<i64>,
}

impl Principal {
    /// The person at this machine.
    pub fn local() -> Self {
        Principal {
            id: "local".to_owned(),
            name: "local".to_owned(),
            scopes: Scopes::ALL,
            hears: Hears::All,
            until_unix_us: None,
        }
    }

    /// Somebody who may do nothing.
    pub fn nobody() -> Self {
        Principal {
            id: "nobody".to_owned(),
            name: "nobody".to_owned(),
            scopes: Scopes::NONE,
            hears: Hears::Only(BTreeSet::new()),
            until_unix_us: None,
        }
    }

    /// Fails unless the principal has this scope.
    pub fn allow(&self, scope: Scope) -> Result<(), AccessError> {
        if self.scopes.has(scope) { Ok(()) } else { Err(AccessError::ScopeMissing(scope)) }
    }
}

/// One thing that a principal may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Hear events.
    Listen,
    /// Answer what agents ask. It takes a subscription to be asked, so it is of use with listen only.
    Reply,
    /// Speak as an agent.
    Publish,
    /// Look after the hub itself.
    Admin,
}

impl Scope {
    /// Every scope there is.
    pub const EVERY: [Scope; 4] = [Scope::Listen, Scope::Reply, Scope::Publish, Scope::Admin];

    /// The name as it is written in files and claims.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Listen => "listen",
            Scope::Reply => "reply",
            Scope::Publish => "publish",
            Scope::Admin => "admin",
        }
    }

    /// The scope of this name, exactly as written.
    pub fn named(name: &str) -> Option<Self> {
        Scope::EVERY.into_iter().find(|scope| scope.name() == name)
    }

    fn bit(self) -> u8 {
        match self {
            Scope::Listen => 1,
            Scope::Reply => 2,
            Scope::Publish => 4,
            Scope::Admin => 8,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of scopes. No scope implies another.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Scopes(u8);

impl Scopes {
    /// Nothing at all.
    pub const NONE: Scopes = Scopes(0);
    /// Everything.
    pub const ALL: Scopes = Scopes(15);

    /// The same set with one more scope.
    pub fn with(self, scope: Scope) -> Self {
        Scopes(self.0 | scope.bit())
    }

    /// Whether the scope is in the set.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The scopes in the set.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::EVERY.into_iter().filter(move |scope| self.has(*scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        scopes.into_iter().fold(Scopes::NONE, Scopes::with)
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl TryFrom<Vec<String>> for Scopes {
    type Error = String;

    fn try_from(names: Vec<String>) -> Result<Self, String> {
        let scope = |name: &String| {
            Scope::named(name).ok_or_else(|| {
                let name = aaep::printable(name);
                format!("\"{name}\" is no scope. Use listen, reply, publish or admin.")
            })
        };
        names.iter().map(scope).collect()
    }
}

impl From<Scopes> for Vec<String> {
    fn from(scopes: Scopes) -> Self {
        scopes.iter().map(|scope| scope.name().to_owned()).collect()
    }
}

/// Which agents a principal hears. Written as `"all"` or as a list of names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "HearsText", into = "HearsText")]
pub enum Hears {
    /// Every agent, also those to come.
    #[default]
    All,
    /// Only these, compared exactly. An empty list hears nobody.
    Only(BTreeSet<String>),
}

impl Hears {
    /// Whether events of this agent may be told to the principal.
    pub fn may_hear(&self, agent: &str) -> bool {
        match self {
            Hears::All => true,
            Hears::Only(agents) => agents.contains(agent),
        }
    }

    /// Only the agents named, or what is wrong with the list.
    pub fn only<I: IntoIterator<Item = String>>(agents: I) -> Result<Self, String> {
        let agents: BTreeSet<String> = agents.into_iter().take(MAX_HEARS + 1).collect();
        if agents.len() > MAX_HEARS {
            return Err(format!("The list names more than {MAX_HEARS} agents. Use \"all\"."));
        }
        if agents.iter().any(|agent| !is_name(agent)) {
            return Err(format!(
                "The name of an agent has 1 to {MAX_NAME_CHARS} characters, none of them control characters."
            ));
        }
        Ok(Hears::Only(agents))
    }
}

/// The form in files.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum HearsText {
    Word(String),
    Names(Vec<String>),
}

impl TryFrom<HearsText> for Hears {
    type Error = String;

    fn try_from(text: HearsText) -> Result<Self, String> {
        match text {
            HearsText::Word(word) if word == "all" => Ok(Hears::All),
            HearsText::Word(_) => {
                Err("Write \"all\", or a list of the names of agents in brackets.".to_owned())
            }
            HearsText::Names(agents) => Hears::only(agents),
        }
    }
}

impl From<Hears> for HearsText {
    fn from(hears: Hears) -> Self {
        match hears {
            Hears::All => HearsText::Word("all".to_owned()),
            Hears::Only(agents) => HearsText::Names(agents.into_iter().collect()),
        }
    }
}

/// Whether this can be the name of somebody: not empty, not too long, nothing that moves a cursor.
pub(crate) fn is_name(text: &str) -> bool {
    !text.trim().is_empty()
        && text.chars().count() <= MAX_NAME_CHARS
        && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_a_set_and_none_implies_another() {
        let admin = Scopes::NONE.with(Scope::Admin).with(Scope::Admin);
        assert!(admin.has(Scope::Admin));
        assert!(
            !admin.has(Scope::Listen) && !admin.has(Scope::Reply) && !admin.has(Scope::Publish)
        );
        assert_eq!(Scope::EVERY.into_iter().collect::<Scopes>(), Scopes::ALL);
        assert_eq!(Vec::<String>::from(Scopes::ALL), ["listen", "reply", "publish", "admin"]);
    }

    #[test]
    fn a_wrong_scope_is_named_and_nothing_is_guessed() {
        for wrong in ["Listen", "listen ", "", "root", "\u{1b}[2J"] {
            let error = Scopes::try_from(vec!["listen".to_owned(), wrong.to_owned()]);
            let error = error.expect_err("no scope of this name");
            assert!(error.contains("Use listen, reply") && !error.contains('\u{1b}'), "{error}");
        }
    }

    #[test]
    fn a_listener_hears_only_the_agents_it_may() {
        let hears = Hears::only(["builder".to_owned()]).expect("a list");
        assert!(hears.may_hear("builder"));
        assert!(!hears.may_hear("Builder") && !hears.may_hear("builder2") && !hears.may_hear(""));
        assert!(Hears::All.may_hear("anyone"));
        assert!(!Hears::only([]).expect("an empty list").may_hear("builder"));
    }

    #[test]
    fn lists_of_agents_are_bounded() {
        assert!(Hears::only((0..MAX_HEARS).map(|n| n.to_string())).is_ok());
        assert!(Hears::only((0..=MAX_HEARS).map(|n| n.to_string())).is_err());
        assert!(Hears::only(["x".repeat(MAX_NAME_CHARS + 1)]).is_err());
        assert!(Hears::only(["a\nb".to_owned()]).is_err());
    }

    #[test]
    fn only_the_scopes_given_are_allowed() {
        let mut somebody = Principal::local();
        somebody.scopes = Scopes::NONE.with(Scope::Listen);
        assert_eq!(somebody.allow(Scope::Listen), Ok(()));
        assert_eq!(somebody.allow(Scope::Reply), Err(AccessError::ScopeMissing(Scope::Reply)));
    }
}
