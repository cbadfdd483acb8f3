//! Judges one command with its words: by the table, and by what commands carry other commands.

use super::path;
use super::sed;
use super::shell::{CommandInput, SHELLS, ShellJudge};
use super::word::CommandWord;
use super::{RiskFinding, RiskGrade};

/// Folders of programs that come with the system. Others are programs that somebody put there.
const PROGRAM_FOLDERS: [&str; 7] = [
    "/bin",
    "/usr/bin",
    "/usr/local/bin",
    "/sbin",
    "/usr/sbin",
    "/usr/local/sbin",
    "/opt/homebrew/bin",
];

/// Commands of the shell that evaluate their arguments, so that a command can hide in a text.
const EVALUATING: [&str; 8] =
    ["let", "test", "[", "printf", "read", "unset", "mapfile", "readarray"];

/// How many commands may wrap each other, such as `sudo nice env …`.
const MAX_WRAPPERS: usize = 8;

/// Judges a command.
pub(super) fn judge_command(
    judge: &mut ShellJudge<'_>,
    words: &[CommandWord],
    input: &CommandInput,
) {
    let mut words = words;
    for _ in 0..MAX_WRAPPERS {
        let Some((name, arguments)) = words.split_first() else { return };
        let Some(name) = program_name(judge, name) else { return };
        let Some(inner) = unwrapped(judge, &name, arguments) else {
            judge_program(judge, &name, arguments, input);
            return;
        };
        words = inner;
    }
    judge.find(RiskGrade::Dangerous, "cannot be understood before it runs");
}

/// The name of the program, if the table can know it.
fn program_name(judge: &mut ShellJudge<'_>, word: &CommandWord) -> Option<String> {
    let is_pattern = word.text.contains(['*', '?', '{', '~'])
        || (word.text.contains('[') && word.text != "[" && word.text != "[[");
    let Some(name) = word.literal().filter(|_| !is_pattern) else {
        judge.find(RiskGrade::Dangerous, "runs a program that is only known when it runs");
        return None;
    };
    match name.rsplit_once('/') {
        None => Some(name.to_owned()),
        Some((folder, name)) if PROGRAM_FOLDERS.contains(&folder) => Some(name.to_owned()),
        Some(_) => {
            judge.find(RiskGrade::Risky, "runs a program that is not in the risk table");
            None
        }
    }
}

/// The command that this one runs, if it is one that only runs another.
fn unwrapped<'w>(
    judge: &mut ShellJudge<'_>,
    name: &str,
    arguments: &'w [CommandWord],
) -> Option<&'w [CommandWord]> {
    let row = judge.table.wrappers.get(name)?.clone();
    if let Some(grade) = row.grade {
        judge.find(grade, &row.why);
    }
    let mut rest = arguments;
    let mut operands = row.operands;
    while let Some((word, after)) = rest.split_first() {
        if word.may_be_option() {
            let takes_value = word
                .literal()
                .is_some_and(|it| row.value_options.iter().any(|option| option == it));
            if name == "env" && word.may_be("-S") {
                judge.find(RiskGrade::Dangerous, "cannot be understood before it runs");
            }
            if !word.is_whole {
                judge.find(RiskGrade::Dangerous, "runs a program that is only known when it runs");
            }
            let skipped = usize::from(takes_value).min(after.len());
            rest = &after[skipped..];
        } else if let Some((variable, _)) = word.text.split_once('=').filter(|_| row.assignments) {
            judge.judge_variable(variable);
            rest = after;
        } else if operands > 0 {
            operands -= 1;
            rest = after;
        } else {
            break;
        }
    }
    if row.more_arguments {
        judge_more_arguments(judge, rest);
    }
    // Without another command they print something, except for the ones that open a shell of their own.
    if rest.is_empty() && row.grade.is_some() {
        judge.find(RiskGrade::Dangerous, "opens a shell");
    }
    Some(rest)
}

/// Judges that a command gets arguments that are not known.
fn judge_more_arguments(judge: &mut ShellJudge<'_>, words: &[CommandWord]) {
    let unknown = CommandWord { text: String::new(), is_whole: false };
    if let Some((name, _)) = words.split_first().filter(|(name, _)| name.is_whole)
        && !SHELLS.contains(&name.text.as_str())
    {
        let with_unknown: Vec<CommandWord> =
            words.iter().cloned().chain([CommandWord::whole("./"), unknown]).collect();
        judge_program(judge, &name.text, &with_unknown[1..], &CommandInput::Unknown);
    }
}

/// Judges a program that is not a wrapper.
fn judge_program(
    judge: &mut ShellJudge<'_>,
    name: &str,
    arguments: &[CommandWord],
    input: &CommandInput,
) {
    match name {
        _ if SHELLS.contains(&name) => return judge_shell_program(judge, arguments, input),
        "eval" => return judge_evaluated(judge, arguments),
        "trap" => return judge_evaluated(judge, arguments.get(..1).unwrap_or_default()),
        "alias" => {
            for definition in arguments {
                match definition.literal().map(|it| it.split_once('=')) {
                    Some(Some((_, text))) => judge.judge_text(text),
                    Some(None) => {}
                    None => judge_evaluated(judge, std::slice::from_ref(definition)),
                }
            }
            return;
        }
        "source" | "." => {
            return judge.find(RiskGrade::Risky, "runs a script that was not looked at");
        }
        "cd" | "pushd" => judge_move(judge, arguments),
        "find" => judge_find(judge, arguments),
        "sed" => judge_sed(judge, arguments),
        "psql" | "mysql" | "mariadb" | "sqlite3" | "mongosh" | "mongo" | "redis-cli" | "duckdb"
        | "clickhouse-client" | "sqlcmd" | "cqlsh" => judge_database(judge, arguments, input),
        "git" => judge_git(judge, arguments),
        _ => {}
    }
    if EVALUATING.contains(&name)
        && arguments.iter().any(|it| it.text.contains("$(") || it.text.contains('`'))
    {
        judge.find(RiskGrade::Dangerous, "hides a command in a text");
    }
    judge_by_table(judge, name, arguments);
}

fn judge_by_table(judge: &mut ShellJudge<'_>, name: &str, arguments: &[CommandWord]) {
    let table = judge.table;
    let words = subcommand_words(judge, name, arguments);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let has_option = |option: &str| {
        let mut may_be_value = false;
        arguments.iter().any(|it| {
            let is_value = may_be_value && !it.is_whole;
            may_be_value = it.literal().is_some_and(|it| table.takes_value(name, it));
            !is_value && it.may_be(option)
        })
    };
    let rows = table.rows_for(name, &words, has_option);
    if rows.is_empty() {
        judge.find(RiskGrade::Risky, "runs a program that is not in the risk table");
    }
    let worst = rows.iter().map(|row| row.grade).max();
    let (mut reads, mut writes) = (false, false);
    for row in rows {
        // Only the worst of what one command does is told.
        let why = if Some(row.grade) == worst { row.why.clone() } else { String::new() };
        let finding = RiskFinding { grade: row.grade, cannot_be_undone: row.cannot_be_undone, why };
        reads |= row.reads_paths;
        writes |= row.writes_paths;
        if row.writes_paths {
            let mut has_path = false;
            for path in arguments.iter().filter(|it| !it.text.starts_with('-')) {
                has_path = true;
                judge.judge_written(path, finding.clone());
            }
            if !has_path {
                judge.add(finding);
            }
        } else {
            judge.add(finding);
        }
    }
    let is_secret = |it: &CommandWord| path::is_secret(table, &it.text);
    if !writes && arguments.iter().any(is_secret) {
        let why =
            if reads { "reads what looks like a secret" } else { "uses what looks like a secret" };
        judge.find(RiskGrade::Risky, why);
    }
}

/// The words that choose what a command with subcommands does. Where an option before them is not known, the command
/// is risky, because the option's value could look like the subcommand.
fn subcommand_words(
    judge: &mut ShellJudge<'_>,
    name: &str,
    arguments: &[CommandWord],
) -> Vec<String> {
    let table = judge.table;
    if !table.has_subcommands(name) {
        return Vec::new();
    }
    let mut words = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let Some(text) = argument.literal() else {
            if words.is_empty() {
                judge.find(RiskGrade::Dangerous, "does something that is only known when it runs");
            }
            break;
        };
        if !text.starts_with('-') {
            words.push(text.to_owned());
        } else if table.takes_value(name, text) {
            arguments.next();
        } else if words.is_empty() && !table.takes_no_value(name, text) {
            judge.find(RiskGrade::Risky, "has an option that is not in the risk table");
        }
    }
    words
}

fn judge_evaluated(judge: &mut ShellJudge<'_>, words: &[CommandWord]) {
    let literals: Option<Vec<&str>> = words.iter().map(CommandWord::literal).collect();
    match literals {
        Some(literals) => judge.judge_text(&literals.join(" ")),
        None => judge.find(RiskGrade::Dangerous, "runs a command that is only known when it runs"),
    }
}

fn judge_shell_program(
    judge: &mut ShellJudge<'_>,
    arguments: &[CommandWord],
    input: &CommandInput,
) {
    let mut is_command = false;
    for argument in arguments {
        match argument.literal() {
            None => {
                return judge
                    .find(RiskGrade::Dangerous, "runs a command that is only known when it runs");
            }
            Some(text) if is_command && !text.starts_with('-') => return judge.judge_text(text),
            Some("--rcfile" | "--init-file" | "-o" | "+o" | "-O" | "+O") => {
                return judge.find(RiskGrade::Dangerous, "runs a script that was not looked at");
            }
            Some(text) if text.starts_with("--") => {}
            Some(text) if text.starts_with('-') && text.len() > 1 => {
                is_command |= text.contains('c');
                // The script comes on standard input, and what follows are its arguments.
                if !is_command && text.contains('s') {
                    break;
                }
            }
            Some("-") => {}
            Some(_) => return judge.find(RiskGrade::Risky, "runs a script that was not looked at"),
        }
    }
    match input {
        CommandInput::Text(text) => judge.judge_text(text),
        CommandInput::Unknown => {
            judge.find(RiskGrade::Dangerous, "runs what another command or a file gives it");
        }
    }
}

fn judge_move(judge: &mut ShellJudge<'_>, arguments: &[CommandWord]) {
    let target = arguments.iter().find(|it| !it.text.starts_with('-') || it.text == "-");
    let is_inside = match target.map(CommandWord::literal) {
        Some(Some(path)) => judge.place.go_to(path),
        _ => judge.place.go_to("~"),
    };
    if !is_inside {
        judge.find(RiskGrade::Ordinary, "goes to a folder outside the project");
    }
}

fn judge_find(judge: &mut ShellJudge<'_>, arguments: &[CommandWord]) {
    let is_exec =
        |it: &CommandWord| matches!(it.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    let mut rest = arguments;
    while let Some(at) = rest.iter().position(is_exec) {
        let command = &rest[at + 1..];
        let end = command.iter().position(|it| matches!(it.text.as_str(), ";" | "+"));
        let end = end.unwrap_or(command.len());
        judge_command(judge, &command[..end], &CommandInput::Unknown);
        rest = &command[end..];
    }
}

fn judge_sed(judge: &mut ShellJudge<'_>, arguments: &[CommandWord]) {
    let mut scripts = Vec::new();
    let mut operands = arguments.iter();
    let mut first_operand = None;
    while let Some(argument) = operands.next() {
        match argument.literal() {
            Some("-e" | "--expression") => scripts.extend(operands.next()),
            Some(text) if text.starts_with('-') => {
                let is_known = matches!(
                    text,
                    "-n" | "-E" | "-r" | "-i" | "-s" | "-z" | "-u" | "--in-place" | "--quiet"
                );
                if !is_known {
                    judge.find(RiskGrade::Risky, "runs a script that was not looked at");
                }
            }
            _ => first_operand = first_operand.or(Some(argument)),
        }
    }
    if scripts.is_empty() {
        scripts.extend(first_operand);
    }
    if !scripts.iter().all(|it| it.literal().is_some_and(sed::is_plain)) {
        judge.find(RiskGrade::Risky, "runs a script that can write files and run commands");
    }
}

/// Words that change or delete what is in a database.
const CHANGING_WORDS: [&str; 22] = [
    "drop",
    "delete",
    "truncate",
    "update",
    "insert",
    "alter",
    "create",
    "grant",
    "revoke",
    "replace",
    "merge",
    "vacuum",
    "flushall",
    "flushdb",
    "del",
    "unlink",
    "set",
    "deletemany",
    "deleteone",
    "dropdatabase",
    "remove",
    "copy",
];

fn judge_database(judge: &mut ShellJudge<'_>, arguments: &[CommandWord], input: &CommandInput) {
    let input = match input {
        CommandInput::Text(text) => text.as_str(),
        CommandInput::Unknown => "",
    };
    let changes = arguments.iter().map(|it| it.text.as_str()).chain([input]).any(|text| {
        let mut words = text.split(|it: char| !it.is_alphanumeric());
        words.any(|word| CHANGING_WORDS.contains(&word.to_ascii_lowercase().as_str()))
    });
    if changes {
        let why = "changes or deletes what is in a database".to_owned();
        judge.add(RiskFinding { grade: RiskGrade::Dangerous, cannot_be_undone: true, why });
    }
}

/// A push of `+branch` replaces a branch, and one of `:branch` deletes it.
fn judge_git(judge: &mut ShellJudge<'_>, arguments: &[CommandWord]) {
    let is_push = arguments.iter().any(|it| it.text == "push");
    if is_push && arguments.iter().any(|it| it.text.starts_with(['+', ':'])) {
        let why = "replaces or deletes what others see".to_owned();
        judge.add(RiskFinding { grade: RiskGrade::Dangerous, cannot_be_undone: true, why });
    }
}
