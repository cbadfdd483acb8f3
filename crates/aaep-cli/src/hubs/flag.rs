//! The flags that name a hub, the same for agents and for people who listen.

use aaep::printable;
use clap::Args;

use super::reach::client;
use super::{HubAddresses, HubTarget, hubs, own_address};
use crate::console::CommandFailure;
use crate::http::HubClient;
use crate::person::key_for;
use crate::settings::{self, ListenSettings, SettingsFlags};

/// Which hub.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct HubAddressFlag {
    /// The hub. By default the one in `AAEP_HUB`, the one in your settings, or your own on this machine.
    ///
    /// Write `unix:` for your own hub, or an address such as `https://hub.example.org`. Other forms are `unix:/path`,
    /// `wss://hub.example.org/aaep/v1/ws` and `grpcs://hub.example.org`. To listen to several hubs, give --hub for each.
    /// An agent speaks to the first.
    #[arg(long, value_name = "ADDRESS", global = true)]
    hub: Vec<String>,
}

impl HubAddressFlag {
    /// The value of --hub, in the form that the settings take.
    fn said(&self) -> Option<String> {
        let said: Vec<&str> =
            self.hub.iter().map(String::as_str).filter(|it| !it.trim().is_empty()).collect();
        if said.is_empty() { None } else { Some(said.join(",")) }
    }

    /// Adds this flag to the others that override settings.
    fn added_to(&self, flags: &SettingsFlags) -> SettingsFlags {
        SettingsFlags { hub: self.said(), ..flags.clone() }
    }

    /// The address of the hub, for a command that needs only one. Of several, it is the first.
    pub(crate) fn address(&self) -> Result<String, CommandFailure> {
        // If the address is given, unusable settings do not matter to an agent.
        let variable = || std::env::var("AAEP_HUB").ok().filter(|it| !it.trim().is_empty());
        let named = match self.said().or_else(variable) {
            Some(text) => Some(HubAddresses::read(&text)),
            None => settings::load(&self.added_to(&SettingsFlags::default()))?.settings.listen.hub,
        };
        let first = named.and_then(|it| it.list().first().cloned());
        Ok(first.unwrap_or_else(own_address))
    }
}

/// Which hub, and with which token.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct HubFlags {
    #[command(flatten)]
    hub: HubAddressFlag,
    /// The token for the hub, as `aaep tokens new` prints it. To set `AAEP_TOKEN` is safer, because other users of this
    /// machine can see command lines. For several hubs, give one for each, separated by commas.
    #[arg(long, value_name = "TOKEN", env = "AAEP_TOKEN", hide_env_values = true, global = true)]
    token: Option<String>,
}

impl HubFlags {
    /// The value of --hub, in the form that the settings take.
    pub(crate) fn said(&self) -> Option<String> {
        self.hub.said()
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref().filter(|it| !it.is_empty())
    }

    /// Adds these flags to the others that override settings.
    pub(crate) fn added_to(&self, flags: &SettingsFlags) -> SettingsFlags {
        self.hub.added_to(flags)
    }

    /// The person's listen settings, with these flags applied.
    pub(crate) fn listen(&self) -> Result<ListenSettings, CommandFailure> {
        Ok(settings::load(&self.added_to(&SettingsFlags::default()))?.settings.listen)
    }

    /// The hubs that the person means.
    pub(crate) fn hubs(&self, listen: &ListenSettings) -> Result<Vec<HubTarget>, CommandFailure> {
        hubs(listen, self.token())
    }

    /// The address of the hub, for a command that needs only one. Of several, it is the first.
    pub(crate) fn address(&self) -> Result<String, CommandFailure> {
        self.hub.address()
    }

    /// A client for the hub, for what an agent does.
    pub(crate) fn agent_client(&self) -> Result<HubClient, CommandFailure> {
        client(&self.address()?, self.first_token())
    }

    /// A client for the hub, for what the person does rather than an agent.
    pub(crate) fn person_client(&self) -> Result<HubClient, CommandFailure> {
        let address = self.address()?;
        let own = if self.first_token().is_none() { key_for(&address) } else { None };
        client(&address, self.first_token().or(own.as_deref()))
    }

    /// Whether an agent shows a token to the hub.
    pub(crate) fn has_token(&self) -> bool {
        self.first_token().is_some()
    }

    fn first_token(&self) -> Option<&str> {
        self.token()?.split(',').next().map(str::trim).filter(|it| !it.is_empty())
    }
}

/// The ways in which earlier versions named a hub. They are taken to say what to type instead.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct OldForms {
    #[arg(value_name = "ADDRESS", hide = true)]
    addresses: Vec<String>,
    #[arg(long = "address", value_name = "ADDRESS", hide = true)]
    flag: Option<String>,
}

impl OldForms {
    /// Fails if a hub is named in an old way.
    pub(crate) fn refuse(&self, command: &str) -> Result<(), CommandFailure> {
        let mut named = self.addresses.iter().chain(&self.flag).peekable();
        if named.peek().is_none() {
            return Ok(());
        }
        let first = self.addresses.first().map_or("", String::as_str);
        let what = if self.flag.is_some() {
            "--address is called --hub now".to_owned()
        } else if first.contains([':', '/', '.']) {
            format!("{} stands alone, and a hub is named with --hub", printable(first))
        } else {
            let what = format!("aaep {command} takes no words, and {} is one", printable(first));
            let next = format!("To hear what it takes: aaep {command} --help");
            return Err(CommandFailure::new(what, next));
        };
        let typed: Vec<String> = named.map(|it| format!("--hub {}", printable(it))).collect();
        Err(CommandFailure::new(what, format!("Type: aaep {command} {}", typed.join(" "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_hubs_are_named_with_commas_or_one_by_one() {
        let flags = |hub: &[&str]| HubFlags {
            hub: HubAddressFlag { hub: hub.iter().map(|it| (*it).to_owned()).collect() },
            token: None,
        };
        assert_eq!(flags(&[]).said(), None);
        assert_eq!(flags(&[""]).said(), None);
        let both = flags(&["unix:", "https://a.example"]).said().expect("two");
        assert_eq!(HubAddresses::read(&both).list(), ["unix:", "https://a.example"]);
        assert_eq!(
            flags(&["https://a.example"]).address().ok().as_deref(),
            Some("https://a.example")
        );
    }

    #[test]
    fn an_old_form_says_what_to_type_now() {
        let refused = |old: &OldForms| old.refuse("listen").expect_err("old").to_string();
        assert!(OldForms::default().refuse("listen").is_ok());
        let alone = OldForms { addresses: vec!["http://127.0.0.1:7117".into()], flag: None };
        assert!(refused(&alone).contains("aaep listen --hub http://127.0.0.1:7117"));
        let word = OldForms { addresses: vec!["listen".into()], flag: None };
        assert!(!refused(&word).contains("--hub") && refused(&word).contains("--help"));
        let flag = OldForms { addresses: Vec::new(), flag: Some("unix:".into()) };
        let said = refused(&flag);
        assert!(said.contains("--address is called --hub now") && said.contains("--hub unix:"));
    }
}
