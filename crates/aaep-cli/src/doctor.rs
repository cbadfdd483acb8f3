//! `aaep doctor`: checks which ways of listening work on this machine, and says how to fix the others.
//!
//! It tries every device with a sentence that the person can hear or feel. Only a device that the person wants and
//! that does not work is an error.

mod devices;

use std::process::ExitCode;
use std::time::Duration;

use aaep_subscriber::Wishes;
use clap::Args;
use serde_json::json;
use tokio::time::timeout;

use crate::console::{CommandFailure, ascii_json_line};
use crate::english::{checking, failures};
use crate::hubs::{HubAddresses, HubFlags, HubTarget, OldForms};
use crate::keys::tell;
use crate::listen::device_table::{self, DeviceFlags};
use crate::listen::{self};
use crate::settings::{self, SettingsFlags, UserSettings};

const EXIT_CODES: &str = "\
For example, to try speech and braille: aaep doctor --speech --braille
Exit codes:
  0  all that you want works: the settings, the hub, and the devices that are turned on
  1  something that you want does not work; you are told which, and what to do
  2  it could not be done: wrong usage";

/// How long closing the subscription may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// What to look at.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct DoctorOptions {
    #[command(flatten)]
    old: OldForms,
    #[command(flatten)]
    hub: HubFlags,
    #[command(flatten)]
    flags: SettingsFlags,
    #[command(flatten)]
    devices: DeviceFlags,
    /// Print one JSON object, for programs.
    #[arg(long)]
    json: bool,
}

/// The result of one check.
#[derive(Debug)]
struct DoctorFinding {
    name: &'static str,
    is_wanted: bool,
    /// What was seen or heard; or why it does not work and what to do. In sentences for people.
    works: Result<String, String>,
}

/// Prints each finding as soon as it is known; as JSON, all of them at the end.
struct DoctorReport {
    is_json: bool,
    findings: Vec<DoctorFinding>,
}

impl DoctorReport {
    fn add(&mut self, finding: DoctorFinding) -> Result<(), CommandFailure> {
        if !self.is_json {
            tell(&finding.said())?;
        }
        self.findings.push(finding);
        Ok(())
    }

    /// Prints the summary, always in the same order. Returns whether everything that the person wants works.
    fn finish(mut self) -> Result<bool, CommandFailure> {
        let devices = device_table::DEVICES.iter().map(|it| it.name);
        let order: Vec<&str> = ["settings", "hub", "lines"].into_iter().chain(devices).collect();
        let place = |name: &str| order.iter().position(|it| name.starts_with(it));
        self.findings.sort_by_key(|it| place(it.name).unwrap_or(order.len()));
        let is_well = self.findings.iter().all(|it| it.works.is_ok() || !it.is_wanted);
        if self.is_json {
            let checks: Vec<_> = self.findings.iter().map(DoctorFinding::json).collect();
            tell(&ascii_json_line(&json!({ "all_wanted_work": is_well, "checks": checks })))?;
        } else {
            tell(&summary(&self.findings))?;
        }
        Ok(is_well)
    }
}

/// Checks everything and reports the findings.
pub(crate) fn run(arguments: &DoctorOptions) -> Result<ExitCode, CommandFailure> {
    arguments.old.refuse("doctor")?;
    let loaded = settings::load(&arguments.hub.added_to(&arguments.flags));
    let found = match &loaded {
        Ok(_) => Ok(checking::SETTINGS_WORK.to_owned()),
        Err(failure) => Err(sentence(failure)),
    };
    let mut report = DoctorReport { is_json: arguments.json, findings: Vec::new() };
    report.add(DoctorFinding { name: "settings", is_wanted: true, works: found })?;
    // If the settings cannot be used, check with the defaults, at the hub named on the command line.
    let mut settings = loaded.map_or_else(
        |_| {
            let mut usual = UserSettings::default();
            usual.listen.hub = arguments.hub.said().map(|said| HubAddresses::read(&said));
            usual
        },
        |it| it.settings,
    );
    arguments.devices.apply(&mut settings);
    report.add(hub(arguments, &settings)?)?;
    devices::look(&settings, &mut |finding| report.add(finding))?;
    Ok(if report.finish()? { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Checks whether the person can listen at the hubs.
fn hub(
    arguments: &DoctorOptions,
    settings: &UserSettings,
) -> Result<DoctorFinding, CommandFailure> {
    let found = |name, works| DoctorFinding { name, is_wanted: true, works };
    let hubs = match arguments.hub.hubs(&settings.listen) {
        Ok(hubs) => hubs,
        Err(failure) => return Ok(found("hubs", Err(sentence(&failure)))),
    };
    let name = if hubs.len() == 1 { "hub" } else { "hubs" };
    let reached = reach(&hubs, settings)?;
    let is_well = reached.iter().all(Result::is_ok);
    let said: Vec<String> = reached.into_iter().map(|it| it.unwrap_or_else(|it| it)).collect();
    let said = said.join(" ");
    Ok(found(name, if is_well { Ok(said) } else { Err(said) }))
}

/// Tries all hubs at the same time.
fn reach(
    hubs: &[HubTarget],
    settings: &UserSettings,
) -> Result<Vec<Result<String, String>>, CommandFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| CommandFailure::new(failures::no_threads(&error), failures::TRY_LATER))?;
    let found = runtime.block_on(async {
        let tasks: Vec<_> = hubs
            .iter()
            .map(|hub| {
                tokio::spawn(try_one(hub.clone(), listen::wishes(settings, hub.token.as_deref())))
            })
            .collect();
        let mut found = Vec::new();
        for task in tasks {
            found.push(task.await.unwrap_or_else(|error| Err(checking::broke_off(&error))));
        }
        found
    });
    runtime.shutdown_background();
    Ok(found)
}

async fn try_one(hub: HubTarget, wishes: Wishes) -> Result<String, String> {
    let subscriber = listen::reach(&hub.address, wishes).await.map_err(|it| sentence(&it))?;
    // If the goodbye takes too long, leave without it.
    let _ = timeout(GOODBYE, subscriber.close(None)).await;
    Ok(checking::can_listen(&aaep::printable(&hub.address)))
}

/// A failure as sentences that begin with a capital letter.
fn sentence(failure: &CommandFailure) -> String {
    let text = failure.to_string();
    let mut characters = text.chars();
    characters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

impl DoctorFinding {
    fn said(&self) -> String {
        let (Ok(says) | Err(says)) = &self.works;
        checking::finding(self.name, self.is_wanted, self.works.is_ok(), says)
    }

    fn json(&self) -> serde_json::Value {
        let (Ok(says) | Err(says)) = &self.works;
        let works = self.works.is_ok();
        json!({ "name": self.name, "is_wanted": self.is_wanted, "works": works, "says": says })
    }
}

fn summary(findings: &[DoctorFinding]) -> String {
    let missing = findings.iter().filter(|it| it.is_wanted && it.works.is_err());
    let names: Vec<&str> = missing.map(|it| it.name).collect();
    checking::summary(&names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(name: &'static str, is_wanted: bool, works: bool) -> DoctorFinding {
        let works = if works { Ok("Heard.".to_owned()) } else { Err("Broken.".to_owned()) };
        DoctorFinding { name, is_wanted, works }
    }

    #[test]
    fn only_what_is_wanted_is_missed() {
        let good = [finding("hub", true, true), finding("speech", false, false)];
        assert_eq!(summary(&good), "All that you want works.");
        let bad = [finding("hub", true, false), finding("speech", true, false)];
        assert_eq!(summary(&bad), "Some of what you want does not work: hub and speech.");
        assert_eq!(summary(&bad[..1]), "Something that you want does not work: hub.");
    }
}
