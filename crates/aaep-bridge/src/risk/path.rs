//! Where an action happens, and what a path means there: inside the project or outside, a secret, or something that
//! decides over what may run.
//!
//! Paths are compared as text, after `.` and `..` are resolved.

use super::table::RiskTable;
use super::{RiskFinding, RiskGrade};

/// The folder in which an action happens, and the project that it belongs to. Both are absolute paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionPlace {
    folder: Vec<String>,
    project: Vec<String>,
    /// Whether the action changed to another folder before, so that `..` leads somewhere that is not known.
    has_moved: bool,
    /// Whether it left the project, so that a relative path is outside.
    has_left: bool,
}

/// The parts of an absolute path, or `None` if it is not absolute or leads above the root.
fn parts(path: &str) -> Option<Vec<String>> {
    path.starts_with('/').then(|| resolve(Vec::new(), path))
}

/// The parts of a path that begins at a folder. `..` at the root stays there, as the system has it.
fn resolve(mut at: Vec<String>, path: &str) -> Vec<String> {
    if path.starts_with('/') {
        at.clear();
    }
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                at.pop();
            }
            part => at.push(part.to_owned()),
        }
    }
    at
}

impl ActionPlace {
    /// An action in a folder of a project. If either path is not absolute, everything counts as outside.
    pub fn new(folder: &str, project: &str) -> Self {
        // No path is inside a project whose only part can be no name.
        let nowhere = || vec!["/".to_owned()];
        ActionPlace {
            folder: parts(folder).unwrap_or_default(),
            project: parts(project).filter(|it| !it.is_empty()).unwrap_or_else(nowhere),
            has_moved: false,
            has_left: false,
        }
    }

    /// Goes to another folder. Returns whether it is known to be inside the project.
    pub(super) fn go_to(&mut self, path: &str) -> bool {
        let is_inside = self.contains(path);
        if is_inside {
            self.folder = resolve(std::mem::take(&mut self.folder), path);
        }
        self.has_moved = true;
        self.has_left |= !is_inside;
        is_inside
    }

    /// Whether the path is the project or inside it.
    fn contains(&self, path: &str) -> bool {
        let is_relative = !path.starts_with('/');
        let is_uncertain = path.starts_with('~')
            || (self.has_moved && path.contains(".."))
            || (self.has_left && is_relative);
        if is_uncertain {
            return false;
        }
        let resolved = resolve(self.folder.clone(), path);
        resolved.len() >= self.project.len() && resolved.starts_with(&self.project)
    }

    /// Whether the path is the project itself or contains it.
    fn is_whole_project(&self, path: &str) -> bool {
        let resolved = resolve(self.folder.clone(), path);
        self.project.starts_with(&resolved)
    }

    /// What writing or deleting the path means, for an action of this kind.
    pub(super) fn write(
        &self,
        table: &RiskTable,
        path: &str,
        action: RiskFinding,
    ) -> Vec<RiskFinding> {
        if is_harmless(table, path) {
            return vec![action];
        }
        let mut findings = Vec::new();
        let worse = |why| RiskFinding {
            grade: if action.grade >= RiskGrade::Risky {
                RiskGrade::Dangerous
            } else {
                RiskGrade::Risky
            },
            ..RiskFinding::new(RiskGrade::Risky, why)
        };
        if !self.contains(path) {
            findings.push(worse("acts outside the project"));
        } else if action.grade >= RiskGrade::Risky && self.is_whole_project(path) {
            findings.push(worse("acts on the whole project"));
        }
        let is_guarded = |name: &str| table.paths.guarded_names.iter().any(|it| it == name);
        if names(&path.to_lowercase()).any(is_guarded) {
            let why = "changes what may run, or what agents may do";
            findings.push(RiskFinding::new(RiskGrade::Dangerous, why));
        }
        if is_secret(table, path) {
            findings.push(worse("changes what looks like a secret"));
        }
        findings.push(action);
        findings
    }
}

/// The names of the files and folders in a path.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split(['/', '=', ':']).filter(|it| !it.is_empty())
}

/// What reading the path means.
pub(super) fn read_finding(table: &RiskTable, path: &str) -> Option<RiskFinding> {
    let why = "reads what looks like a secret";
    is_secret(table, path).then(|| RiskFinding::new(RiskGrade::Risky, why))
}

/// Whether a path looks like one that holds secrets. Some systems take small and capital letters for the same.
pub(super) fn is_secret(table: &RiskTable, path: &str) -> bool {
    let paths = &table.paths;
    let path = path.to_lowercase();
    let ends_with_any =
        |text: &str, endings: &[String]| endings.iter().any(|it| text.ends_with(it.as_str()));
    !ends_with_any(&path, &paths.public_endings)
        && names(&path).any(|name| {
            paths.secret_names.iter().any(|it| it == name)
                || ends_with_any(name, &paths.secret_endings)
                || paths.secret_beginnings.iter().any(|it| name.starts_with(it.as_str()))
        })
}

/// Whether the path is a device that keeps nothing, such as `/dev/null`.
pub(super) fn is_device(table: &RiskTable, path: &str) -> bool {
    table.paths.harmless.iter().any(|it| it == path && !it.ends_with('/'))
}

fn is_harmless(table: &RiskTable, path: &str) -> bool {
    let Some(resolved) = parts(path) else { return false };
    let resolved = format!("/{}", resolved.join("/"));
    table.paths.harmless.iter().any(|it| {
        if it.ends_with('/') { resolved.starts_with(it.as_str()) } else { resolved == *it }
    })
}
