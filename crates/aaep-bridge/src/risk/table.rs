//! The table of commands: the standard one, and a person's own rows, which win over it.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;

use super::RiskGrade;

/// The table that comes with the crate.
const STANDARD: &str = include_str!("table.toml");

/// How risky commands are. Read it from text with [`RiskTable::with_own_rows`].
#[derive(Debug, Clone)]
pub struct RiskTable {
    pub(super) paths: PathLists,
    pub(super) risky_variables: Vec<String>,
    pub(super) wrappers: HashMap<String, WrapperRow>,
    value_options: HashMap<String, Vec<String>>,
    plain_options: HashMap<String, Vec<String>>,
    /// By the name of the command. A person's own rows come first.
    rows: HashMap<String, Vec<CommandRow>>,
    /// The tools of MCP servers. A person's own rows come first.
    tools: Vec<ToolRiskRow>,
}

/// The text of a table cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableError(String);

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TableError {}

/// A table as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    #[serde(default)]
    value_options: HashMap<String, Vec<String>>,
    #[serde(default)]
    plain_options: HashMap<String, Vec<String>>,
    #[serde(default)]
    wrapper: HashMap<String, WrapperRow>,
    #[serde(default)]
    variables: VariableLists,
    #[serde(default)]
    paths: PathLists,
    #[serde(default)]
    command: Vec<WrittenRow>,
    #[serde(default)]
    tool: Vec<ToolRiskRow>,
}

/// How risky tools of an MCP server are.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolRiskRow {
    /// The name that the person gave the server.
    server: String,
    /// The tools. A star stands for all of them.
    names: Vec<String>,
    pub(super) grade: RiskGrade,
    #[serde(default)]
    pub(super) cannot_be_undone: bool,
    #[serde(default)]
    pub(super) why: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct VariableLists {
    #[serde(default)]
    risky: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PathLists {
    pub(super) harmless: Vec<String>,
    pub(super) secret_names: Vec<String>,
    pub(super) secret_endings: Vec<String>,
    pub(super) secret_beginnings: Vec<String>,
    pub(super) public_endings: Vec<String>,
    pub(super) guarded_names: Vec<String>,
}

/// A command that runs another command.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrapperRow {
    /// How many words of its own come before the other command.
    pub(super) operands: usize,
    pub(super) value_options: Vec<String>,
    /// Whether assignments may come before the other command.
    pub(super) assignments: bool,
    /// Whether the other command gets more arguments, which are not known.
    pub(super) more_arguments: bool,
    pub(super) grade: Option<RiskGrade>,
    pub(super) why: String,
}

/// One row of the table, as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRow {
    names: Vec<String>,
    #[serde(default)]
    words: Vec<String>,
    #[serde(default)]
    options: Vec<String>,
    grade: RiskGrade,
    #[serde(default)]
    cannot_be_undone: bool,
    #[serde(default)]
    reads_paths: bool,
    #[serde(default)]
    writes_paths: bool,
    #[serde(default)]
    why: String,
}

/// What a command does, with certain words or a certain option.
#[derive(Debug, Clone)]
pub(super) struct CommandRow {
    words: Vec<String>,
    option: Option<String>,
    pub(super) grade: RiskGrade,
    pub(super) cannot_be_undone: bool,
    pub(super) reads_paths: bool,
    pub(super) writes_paths: bool,
    pub(super) why: String,
}

impl WrittenRow {
    /// One row for each entry of `words` and each option.
    fn rows(&self) -> Vec<CommandRow> {
        let words: Vec<Vec<String>> = if self.words.is_empty() {
            vec![Vec::new()]
        } else {
            self.words.iter().map(|it| it.split(' ').map(str::to_owned).collect()).collect()
        };
        let options: Vec<Option<String>> = if self.options.is_empty() {
            vec![None]
        } else {
            self.options.iter().cloned().map(Some).collect()
        };
        let row = |words: &Vec<String>, option: &Option<String>| CommandRow {
            words: words.clone(),
            option: option.clone(),
            grade: self.grade,
            cannot_be_undone: self.cannot_be_undone,
            reads_paths: self.reads_paths,
            writes_paths: self.writes_paths,
            why: self.why.clone(),
        };
        words.iter().flat_map(|words| options.iter().map(|option| row(words, option))).collect()
    }
}

impl CommandRow {
    /// Whether the row applies to a command with these words.
    fn begins(&self, words: &[&str]) -> bool {
        words.len() >= self.words.len() && self.words.iter().zip(words).all(|(own, it)| own == it)
    }
}

impl RiskTable {
    /// The table that comes with the crate.
    ///
    /// # Panics
    ///
    /// Never: a test reads the same text.
    pub fn standard() -> Self {
        let file: TableFile = toml::from_str(STANDARD).expect("the table of the crate is valid");
        let mut table = RiskTable {
            paths: file.paths,
            risky_variables: file.variables.risky,
            wrappers: file.wrapper,
            value_options: file.value_options,
            plain_options: file.plain_options,
            rows: HashMap::new(),
            tools: file.tool,
        };
        table.add_rows(file.command);
        table
    }

    /// The standard table with a person's own rows, which win. Their lists of paths and variables count besides the
    /// standard ones.
    ///
    /// # Errors
    ///
    /// If the text is not a table: nothing of it counts then.
    pub fn with_own_rows(text: &str) -> Result<Self, TableError> {
        let own: TableFile = toml::from_str(text).map_err(|it| TableError(it.to_string()))?;
        let mut table = RiskTable::standard();
        let standard = std::mem::take(&mut table.rows);
        table.add_rows(own.command);
        for (name, rows) in standard {
            let all = table.rows.entry(name).or_default();
            let is_replaced = |row: &CommandRow| {
                all.iter().any(|own| own.words == row.words && own.option == row.option)
            };
            let kept: Vec<CommandRow> = rows.into_iter().filter(|it| !is_replaced(it)).collect();
            all.extend(kept);
        }
        table.tools.splice(0..0, own.tool);
        table.risky_variables.extend(own.variables.risky);
        table.wrappers.extend(own.wrapper);
        table.value_options.extend(own.value_options);
        table.plain_options.extend(own.plain_options);
        table.paths.harmless.extend(own.paths.harmless);
        table.paths.secret_names.extend(own.paths.secret_names);
        table.paths.secret_endings.extend(own.paths.secret_endings);
        table.paths.secret_beginnings.extend(own.paths.secret_beginnings);
        table.paths.public_endings.extend(own.paths.public_endings);
        table.paths.guarded_names.extend(own.paths.guarded_names);
        Ok(table)
    }

    fn add_rows(&mut self, written: Vec<WrittenRow>) {
        for row in written {
            for name in &row.names {
                self.rows.entry(name.clone()).or_default().extend(row.rows());
            }
        }
    }

    /// The row for a tool of an MCP server. A row that names the tool wins over one for all tools.
    pub(super) fn tool_row(&self, server: &str, tool: &str) -> Option<&ToolRiskRow> {
        let names = |row: &&ToolRiskRow, name: &str| {
            row.server == server && row.names.iter().any(|it| it == name)
        };
        let exact = self.tools.iter().find(|it| names(it, tool));
        exact.or_else(|| self.tools.iter().find(|it| names(it, "*")))
    }

    /// Whether the option takes its value from the next word.
    pub(super) fn takes_value(&self, command: &str, option: &str) -> bool {
        self.value_options.get(command).is_some_and(|it| it.iter().any(|it| it == option))
    }

    /// Whether it is known that the option takes no value from the next word.
    pub(super) fn takes_no_value(&self, command: &str, option: &str) -> bool {
        option.contains('=')
            || self.plain_options.get(command).is_some_and(|it| it.iter().any(|it| it == option))
    }

    /// Whether the command has rows that depend on its words.
    pub(super) fn has_subcommands(&self, command: &str) -> bool {
        self.rows.get(command).is_some_and(|rows| rows.iter().any(|row| !row.words.is_empty()))
    }

    /// The rows that apply to a command with these words: of those without options the ones with the most words, and
    /// those of whose options `has_option` finds one.
    pub(super) fn rows_for(
        &self,
        command: &str,
        words: &[&str],
        has_option: impl Fn(&str) -> bool,
    ) -> Vec<&CommandRow> {
        let Some(rows) = self.rows.get(command) else { return Vec::new() };
        let matching = rows.iter().filter(|row| row.begins(words));
        let (with_option, plain): (Vec<_>, Vec<_>) = matching.partition(|row| row.option.is_some());
        let most = plain.iter().map(|row| row.words.len()).max();
        let best = plain.into_iter().filter(|row| Some(row.words.len()) == most);
        let is_given = |row: &&CommandRow| row.option.as_deref().is_some_and(&has_option);
        best.chain(with_option.into_iter().filter(is_given)).collect()
    }
}
