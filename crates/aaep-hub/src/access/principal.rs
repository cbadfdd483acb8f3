//! Principals: what they may do, which owners they belong to, and which agents they hear (§10.3.2, rulings
//! 14, 36, 37).
//!
//! A principal is the result of authentication. This file does not decide whether a credential is valid, and
//! nothing here ever widens what a credential allows.

use std::collections::BTreeSet;
use std::fmt;

use aaep_engine::AgentTags;

use serde::{Deserialize, Serialize};

use crate::access::AccessError;

/// The most agents that a list of [`HeardAgents`] may name.
pub const MAX_HEARS: usize = 256;
/// The longest name of a principal or of an agent, in characters.
pub const MAX_NAME_CHARS: usize = 256;

/// The most owners that a principal may have, and the most agent names that it may be bound to.
pub const MAX_OWNERS: usize = 64;

/// The owner of the programs that belong to the person who runs the hub.
pub const HUB_OWNER: &str = "me";

/// The id of a program on this machine that has no credential.
const LOCAL_ID: &str = "local";
/// The id of the person's own programs, which have the person's key.
const PERSON_ID: &str = "person";
/// The start of the id under which an allowed local program listens and answers.
const PROGRAM_PREFIX: &str = "program:";
/// The start of the id of a program that uses the address that the person made for it.
const ADDRESS_PREFIX: &str = "address:";

/// The identity under which a connection was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Identifies the principal as the owner of subscriptions and for limits. It begins with the kind of
    /// credential, so that a name from an issuer can never be mistaken for a token or for the local user.
    pub id: String,
    /// The name shown to people. It is not unique, and never compared.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// Which agents it hears.
    pub hears: HeardAgents,
    /// The people or groups that it belongs to. Agents that it publishes for belong to them too, and it
    /// hears their agents.
    pub owners: BTreeSet<String>,
    /// The only agent names that it may use. If absent, it may use any name that nobody else holds.
    pub speaks_as: Option<BTreeSet<String>>,
    /// When the credential expires, in microseconds since the start of 1970. If absent, it never expires.
    pub until_unix_us: Option<i64>,
    /// The credential itself, where it can be replaced: replacing it ends everything that was begun with it.
    pub proof: Option<String>,
}

impl Principal {
    /// A principal that belongs to itself and hears its own agents.
    pub fn new(id: impl Into<String>, name: impl Into<String>, scopes: Scopes) -> Self {
        let id = id.into();
        Principal {
            owners: BTreeSet::from([id.clone()]),
            id,
            name: name.into(),
            scopes,
            hears: HeardAgents::Own,
            speaks_as: None,
            until_unix_us: None,
            proof: None,
        }
    }

    /// A program on this machine that has no credential. It listens and publishes; it may answer only after
    /// the person allowed it (ruling 37).
    pub fn local() -> Self {
        let scopes = [Scope::Listen, Scope::Reply, Scope::Publish].into_iter().collect();
        Principal::new(LOCAL_ID, LOCAL_ID, scopes).owned_by([HUB_OWNER.to_owned()])
    }

    /// The person who runs the hub, represented by a program that has the person's key.
    pub fn person() -> Self {
        Principal::new(PERSON_ID, "you", Scopes::ALL).owned_by([HUB_OWNER.to_owned()])
    }

    /// A local program that the person allowed to answer, as a subscriber.
    pub(crate) fn allowed_program(program: &str) -> Self {
        let scopes = [Scope::Listen, Scope::Reply].into_iter().collect();
        Principal::new(format!("{PROGRAM_PREFIX}{program}"), program, scopes)
            .owned_by([HUB_OWNER.to_owned()])
    }

    /// A program that uses the address that the person made for it. It is identified by the secret in that
    /// address, not by a name, which other programs could use as well.
    pub(crate) fn at_address(name: &str, proof: String) -> Self {
        let scopes = [Scope::Listen, Scope::Reply].into_iter().collect();
        let principal = Principal::new(format!("{ADDRESS_PREFIX}{name}"), name, scopes)
            .owned_by([HUB_OWNER.to_owned()]);
        Principal { proof: Some(proof), ..principal }
    }

    /// Replaces the owners.
    #[must_use]
    pub fn owned_by(mut self, owners: impl IntoIterator<Item = String>) -> Self {
        self.owners = owners.into_iter().collect();
        self
    }

    /// The principal as people are told of it, such as "token laptop". Two principals can have the same words.
    /// Each begins with one of [`PRINCIPAL_KINDS`](crate::name_reading::PRINCIPAL_KINDS).
    pub(crate) fn in_words(&self) -> String {
        let kind = match self.id.as_str() {
            LOCAL_ID => return "local program".to_owned(),
            PERSON_ID => return "your own program".to_owned(),
            id if id.starts_with("certificate:") => "certificate",
            id if id.starts_with("user:") => "user",
            id if id.starts_with("jwt:") => "account",
            id if id.starts_with("child ") => "local program",
            _ => "token",
        };
        format!("{kind} {}", self.name)
    }

    /// Adds what a rule of the settings says. Without owners, the principal still belongs to itself; without names, it
    /// may use any name that nobody else holds.
    #[must_use]
    pub(crate) fn with_rights(
        mut self,
        hears: &HeardAgents,
        owners: &[String],
        speaks_as: &[String],
    ) -> Self {
        if !owners.is_empty() {
            self.owners = owners.iter().cloned().collect();
        }
        self.speaks_as = (!speaks_as.is_empty()).then(|| speaks_as.iter().cloned().collect());
        self.hears = hears.clone();
        self
    }

    /// Whether it is one of the person's own programs.
    pub fn is_person(&self) -> bool {
        self.id == PERSON_ID
    }

    /// Whether it is a local program without a credential.
    pub fn is_local_program(&self) -> bool {
        self.id == LOCAL_ID
    }

    /// The local program that answers under this id.
    pub(crate) fn program_of_id(id: &str) -> Option<&str> {
        id.strip_prefix(PROGRAM_PREFIX)
    }

    /// Whether it is a program that the person allowed to answer.
    pub(crate) fn is_allowed_program(&self) -> bool {
        is_allowed_program(&self.id)
    }

    /// Whether both principals act for the person who runs the hub, as one of the person's own programs or
    /// as a program that the person allowed.
    pub(crate) fn is_same_person(&self, other_id: &str) -> bool {
        let is_persons = |id: &str| id == PERSON_ID || is_allowed_program(id);
        // Stores of earlier versions record the person's answers as those of `local`.
        let was_persons = other_id == LOCAL_ID;
        self.id == other_id || (is_persons(&self.id) && (is_persons(other_id) || was_persons))
    }

    /// The tags of an agent with this name that the principal publishes for. They decide who hears it.
    pub(crate) fn agent_tags(&self, agent_id: &str) -> AgentTags {
        let owners = self.owners.iter().map(|owner| owner_tag(owner));
        AgentTags::new(owners.chain([agent_tag(agent_id), held_tag(agent_id, &self.id)]))
    }

    /// Which agents it hears, in the form that the engine compares.
    pub(crate) fn hearing(&self) -> aaep_engine::HearingScope {
        let tagged = match &self.hears {
            HeardAgents::All => return aaep_engine::HearingScope::All,
            HeardAgents::Own => AgentTags::new(self.owners.iter().map(|owner| owner_tag(owner))),
            HeardAgents::Only(agents) => {
                AgentTags::new(agents.iter().map(|agent| wanted_tag(agent)))
            }
        };
        aaep_engine::HearingScope::Tagged(tagged)
    }

    /// A principal that may do nothing.
    pub fn nobody() -> Self {
        let nobody = Principal::new("nobody", "nobody", Scopes::NONE);
        Principal { hears: HeardAgents::Only(BTreeSet::new()), ..nobody }
    }

    /// Fails unless the principal has this scope.
    pub fn allow(&self, scope: Scope) -> Result<(), AccessError> {
        if self.scopes.has(scope) { Ok(()) } else { Err(AccessError::ScopeMissing(scope)) }
    }
}

/// Whether this is the id of a program that the person allowed to answer.
fn is_allowed_program(id: &str) -> bool {
    [PROGRAM_PREFIX, ADDRESS_PREFIX].iter().any(|prefix| id.starts_with(prefix))
}

/// The tag of all agents of an owner.
fn owner_tag(owner: &str) -> String {
    format!("owner:{owner}")
}

/// The tag of all agents with a name, whichever principal holds it.
fn agent_tag(agent_id: &str) -> String {
    format!("agent:{agent_id}")
}

/// The tag of the agent whose name this principal holds. The id comes first and contains no space, so that
/// no name can look like another principal's.
fn held_tag(agent_id: &str, principal_id: &str) -> String {
    format!("held:{} {agent_id}", principal_id.replace(' ', "%20"))
}

/// The tag that matches an entry of a list: `NAME`, or `NAME@PRINCIPAL` for the agent whose name that
/// principal holds.
fn wanted_tag(entry: &str) -> String {
    let kinds = ["token:", "jwt:", "certificate:", "user:", "child "];
    let is_id = |id: &str| {
        id == LOCAL_ID || id == PERSON_ID || kinds.iter().any(|kind| id.starts_with(kind))
    };
    match entry.rsplit_once('@').filter(|(_, id)| is_id(id)) {
        Some((agent_id, principal_id)) => held_tag(agent_id, principal_id),
        None => agent_tag(entry),
    }
}

/// The tags of sessions in a store that was written before agents had owners.
pub(crate) fn tags_before_owners(agent_id: &str, principal_id: &str) -> AgentTags {
    let owner = if principal_id == LOCAL_ID { HUB_OWNER } else { principal_id };
    let held = held_tag(agent_id, principal_id);
    AgentTags::new([owner_tag(owner), agent_tag(agent_id), held])
}

/// Checks a list of owners or names.
pub(crate) fn name_list(
    names: impl IntoIterator<Item = String>,
) -> Result<BTreeSet<String>, String> {
    let names: BTreeSet<String> = names.into_iter().take(MAX_OWNERS + 1).collect();
    if names.len() > MAX_OWNERS {
        return Err(format!("The list has more than {MAX_OWNERS} names. Remove some."));
    }
    if !names.iter().all(|name| is_name(name)) {
        return Err(format!(
            "A name has 1 to {MAX_NAME_CHARS} characters, none of them control characters."
        ));
    }
    Ok(names)
}

/// One permission of a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Hear events.
    Listen,
    /// Answer agents' asks. Only subscribers receive asks, so this is useful only together with listen.
    Reply,
    /// Publish as an agent.
    Publish,
    /// Administer the hub itself.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const EVERY: [Scope; 4] = [Scope::Listen, Scope::Reply, Scope::Publish, Scope::Admin];

    /// The name as written in files and claims.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Listen => "listen",
            Scope::Reply => "reply",
            Scope::Publish => "publish",
            Scope::Admin => "admin",
        }
    }

    /// The scope with this name, which must match exactly.
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
    /// No scope.
    pub const NONE: Scopes = Scopes(0);
    /// Every scope.
    pub const ALL: Scopes = Scopes(15);

    /// Adds a scope to the set.
    pub fn with(self, scope: Scope) -> Self {
        Scopes(self.0 | scope.bit())
    }

    /// Whether the scope is in the set.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Whether the set is empty.
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
                format!("\"{name}\" is not a scope. Use listen, reply, publish or admin.")
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

/// Which agents a principal hears. Written as `"own"`, `"all"` or a list of names, where `NAME@PRINCIPAL`
/// means the agent whose name that principal holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "HearsText", into = "HearsText")]
pub enum HeardAgents {
    /// The agents of its own owners.
    #[default]
    Own,
    /// Every agent of every owner, including future ones. The person has to choose this sharing.
    All,
    /// Only these agents, compared exactly. An empty list hears no agent.
    Only(BTreeSet<String>),
}

impl HeardAgents {
    /// Only the named agents. Fails if the list is not valid.
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
        Ok(HeardAgents::Only(agents))
    }
}

/// The form of [`HeardAgents`] in files and claims.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum HearsText {
    Word(String),
    Names(Vec<String>),
}

impl TryFrom<HearsText> for HeardAgents {
    type Error = String;

    fn try_from(text: HearsText) -> Result<Self, String> {
        match text {
            HearsText::Word(word) if word == "all" => Ok(HeardAgents::All),
            HearsText::Word(word) if word == "own" => Ok(HeardAgents::Own),
            HearsText::Word(_) => {
                Err("Write \"own\", \"all\", or a list of the names of agents in brackets."
                    .to_owned())
            }
            HearsText::Names(agents) => HeardAgents::only(agents),
        }
    }
}

impl From<HeardAgents> for HearsText {
    fn from(hears: HeardAgents) -> Self {
        match hears {
            HeardAgents::All => HearsText::Word("all".to_owned()),
            HeardAgents::Own => HearsText::Word("own".to_owned()),
            HeardAgents::Only(agents) => HearsText::Names(agents.into_iter().collect()),
        }
    }
}

/// Whether this can be a name: not blank, not too long, and without control characters.
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
    fn a_subscriber_hears_only_the_agents_it_may() {
        let speaks = |id: &str, owner: &str| {
            Principal::new(id, id, Scopes::ALL).owned_by([owner.to_owned()])
        };
        let (ada, team) = (speaks("token:ada", "ada"), speaks("token:team", "team"));
        let may_hear = |hears: HeardAgents, agent: AgentTags| {
            Principal { hears, ..ada.clone() }.hearing().includes(&agent)
        };
        let only = |name: &str| HeardAgents::only([name.to_owned()]).expect("a list");
        assert!(may_hear(HeardAgents::Own, ada.agent_tags("builder")));
        assert!(!may_hear(HeardAgents::Own, team.agent_tags("builder")), "somebody else's");
        assert!(may_hear(HeardAgents::All, team.agent_tags("builder")));
        for other in ["Builder", "builder2", ""] {
            assert!(!may_hear(only("builder"), team.agent_tags(other)), "{other}");
        }
        assert!(may_hear(only("builder"), team.agent_tags("builder")));
        assert!(may_hear(only("builder@token:team"), team.agent_tags("builder")));
        assert!(!may_hear(only("builder@token:team"), ada.agent_tags("builder")));
        let posing = ada.agent_tags("builder@token:team");
        assert!(!may_hear(only("builder@token:team"), posing), "a name is not a principal");
        assert!(!may_hear(HeardAgents::only([]).expect("empty"), ada.agent_tags("builder")));
    }

    #[test]
    fn a_local_program_and_the_person_are_two_principals_of_one_owner() {
        let (local, person) = (Principal::local(), Principal::person());
        assert!(local.is_local_program() && person.is_person() && local.id != person.id);
        assert!(person.hearing().includes(&local.agent_tags("builder")));
        assert!(!local.scopes.has(Scope::Admin));
    }

    #[test]
    fn lists_of_agents_are_bounded() {
        assert!(HeardAgents::only((0..MAX_HEARS).map(|n| n.to_string())).is_ok());
        assert!(HeardAgents::only((0..=MAX_HEARS).map(|n| n.to_string())).is_err());
        assert!(HeardAgents::only(["x".repeat(MAX_NAME_CHARS + 1)]).is_err());
        assert!(HeardAgents::only(["a\nb".to_owned()]).is_err());
    }

    #[test]
    fn only_the_scopes_given_are_allowed() {
        let mut somebody = Principal::local();
        somebody.scopes = Scopes::NONE.with(Scope::Listen);
        assert_eq!(somebody.allow(Scope::Listen), Ok(()));
        assert_eq!(somebody.allow(Scope::Reply), Err(AccessError::ScopeMissing(Scope::Reply)));
    }
}
