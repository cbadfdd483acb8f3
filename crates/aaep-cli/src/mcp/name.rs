//! What a server is called, from the command that starts it.

use std::ffi::OsString;
use std::path::Path;

/// Programs that start another one, which says more.
const STARTERS: [&str; 19] = [
    "npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "node", "deno", "tsx", "uv", "uvx",
    "pipx", "python", "python3", "docker", "podman", "sh", "env",
];

/// Words that come before the name of what they start.
const ORDERS: [&str; 6] = ["run", "exec", "dlx", "tool", "x", "start"];

/// The name of a server that is started in this way.
pub(super) fn of_command(command: &[OsString]) -> String {
    let words: Vec<String> = command.iter().map(|it| it.to_string_lossy().into_owned()).collect();
    let stem = |word: &str| {
        let path = Path::new(word);
        let ends = ["js", "mjs", "cjs", "ts", "py", "exe", "sh"];
        let has_end = path.extension().is_some_and(|it| ends.iter().any(|end| it == *end));
        let name = if has_end { path.file_stem() } else { path.file_name() };
        name.map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let Some((first, rest)) = words.split_first() else { return "server".to_owned() };
    let name = stem(first);
    if !STARTERS.contains(&name.as_str()) {
        return name;
    }
    let is_named = |it: &&String| !it.starts_with('-') && !ORDERS.contains(&it.as_str());
    let found = rest.iter().find(is_named).map(|it| stem(it)).unwrap_or_default();
    // A version, as in server@1.2.3, is not part of the name.
    let found = found.split(['@', '=', '[']).next().unwrap_or_default();
    if found.is_empty() { name } else { found.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_called_by_what_is_started_and_not_by_what_starts_it() {
        for (command, name) in [
            ("npx -y @modelcontextprotocol/server-everything@2026.8.31", "server-everything"),
            ("uvx mcp-server-git --repository /home/ada/shop", "mcp-server-git"),
            ("python3 -m mcp_server_time", "mcp_server_time"),
            ("/opt/tools/files.py", "files"),
            ("node /srv/mcp/dist/notes.mjs", "notes"),
            ("uv run --quiet notes", "notes"),
            ("github-mcp-server stdio", "github-mcp-server"),
            ("npx", "npx"),
        ] {
            let words: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            assert_eq!(of_command(&words), name, "{command}");
        }
    }
}
