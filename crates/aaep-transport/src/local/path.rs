//! The addresses of local sockets (B.3.1, B.4.1).

use std::fmt;
use std::path::{Path, PathBuf};

/// The longest path that a Unix socket can have on every system; it is shorter than that of a file.
pub const MAX_SOCKET_PATH_BYTES: usize = 103;

/// The longest socket name that is derived from the name of a producer.
const MAX_NAME_CHARS: usize = 64;

/// There is no usable folder for sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSocketFolder;

impl fmt::Display for NoSocketFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("There is no folder for local sockets here. Say which path to use.")
    }
}

impl std::error::Error for NoSocketFolder {}

/// The name of a producer as a file name: characters that could mean something to the system become underscores.
pub fn socket_name(producer_id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain = |c: char| if is_plain(c) { c } else { '_' };
    let name: String = producer_id.chars().take(MAX_NAME_CHARS).map(plain).collect();
    // No name begins with a dot, so that none is hidden or leads to a parent folder.
    if name.is_empty() || name.starts_with('.') { format!("_{name}") } else { name }
}

/// Where a producer may be found, the likeliest place first.
#[cfg(unix)]
pub fn connect_paths(producer_id: &str) -> Vec<PathBuf> {
    let file = format!("{}.sock", socket_name(producer_id));
    folders().into_iter().map(|folder| folder.join(&file)).collect()
}

/// Where a producer may be found, the likeliest place first.
#[cfg(not(unix))]
pub fn connect_paths(producer_id: &str) -> Vec<PathBuf> {
    vec![Path::new(r"\\.\pipe\aaep").join(socket_name(producer_id))]
}

/// Where a producer opens its socket: the first folder that exists or can be created, and belongs to us alone.
#[cfg(unix)]
pub fn bind_path(producer_id: &str) -> Result<PathBuf, NoSocketFolder> {
    let file = format!("{}.sock", socket_name(producer_id));
    let usable = folders().into_iter().find(|folder| is_usable(folder));
    usable.map(|folder| folder.join(file)).ok_or(NoSocketFolder)
}

/// Where a producer opens its pipe.
#[cfg(not(unix))]
pub fn bind_path(producer_id: &str) -> Result<PathBuf, NoSocketFolder> {
    connect_paths(producer_id).into_iter().next().ok_or(NoSocketFolder)
}

/// The folders of B.4.1, in order.
#[cfg(unix)]
fn folders() -> Vec<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = if cfg!(target_os = "macos") {
        set("HOME").map(|home| home.join("Library/Application Support/AAEP"))
    } else {
        set("XDG_RUNTIME_DIR").map(|folder| folder.join("aaep"))
    };
    let fallback = PathBuf::from(format!("/tmp/aaep-{}", super::own_user_id()));
    own.into_iter().chain([fallback]).collect()
}

/// Whether a folder exists or can be created, is not a link, and nobody else can put anything into it.
#[cfg(unix)]
fn is_usable(folder: &Path) -> bool {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};

    let made = std::fs::DirBuilder::new().mode(0o700).create(folder);
    let is_there = match made {
        Ok(()) => true,
        Err(error) => error.kind() == std::io::ErrorKind::AlreadyExists,
    };
    let is_own = |it: std::fs::Metadata| {
        it.is_dir() && it.uid() == super::own_user_id() && it.mode() & 0o022 == 0
    };
    is_there && std::fs::symlink_metadata(folder).is_ok_and(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_never_be_a_way_elsewhere() {
        for (id, expected) in [
            ("retirement-planner", "retirement-planner"),
            ("Retirement-Planner", "Retirement-Planner"),
            ("../../etc/passwd", "_.._.._etc_passwd"),
            ("", "_"),
            ("..", "_.."),
            ("a b\0c/d", "a_b_c_d"),
            ("größe", "gr__e"),
        ] {
            assert_eq!(socket_name(id), expected, "{id:?}");
        }
        assert_eq!(socket_name(&"x".repeat(1000)).len(), 64);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_can_write_to_or_that_is_a_link_is_not_used() {
        use std::os::unix::fs::PermissionsExt as _;

        let place = tempfile::tempdir().expect("a folder");
        let inside = |name: &str| place.path().join(name);
        assert!(is_usable(&inside("new")), "it is made");
        let mode = std::fs::metadata(inside("new")).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(is_usable(&inside("new")), "it is there already");
        std::os::unix::fs::symlink(inside("new"), inside("link")).expect("a link");
        assert!(!is_usable(&inside("link")));
        std::fs::write(inside("file"), "").expect("a file");
        assert!(!is_usable(&inside("file")));
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(inside("new"), open).expect("permissions");
        assert!(!is_usable(&inside("new")));
        assert!(!is_usable(&inside("none/within")));
    }
}
