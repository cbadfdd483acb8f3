//! The folders in which this program keeps what belongs to the person who runs it.

use std::fs::DirBuilder;
use std::path::{Path, PathBuf};
use std::{env, io};

use crate::console::CommandFailure;
use crate::english::failures;

/// For data, such as keys. `option` is the flag to name if there is no home folder.
pub(crate) fn data_folder(option: &str) -> Result<PathBuf, CommandFailure> {
    own_folder(["XDG_DATA_HOME", ".local/share", "LOCALAPPDATA"], option)
}

/// For state that is kept between runs.
pub(crate) fn state_folder() -> Result<PathBuf, CommandFailure> {
    own_folder(["XDG_STATE_HOME", ".local/state", "LOCALAPPDATA"], "--store")
}

/// For settings and tokens.
pub(crate) fn configuration_folder() -> Result<PathBuf, CommandFailure> {
    own_folder(["XDG_CONFIG_HOME", ".config", "APPDATA"], "--file")
}

/// This program's folder: below the first variable, or this folder of the home folder, or the last variable.
fn own_folder(
    [variable, in_home, on_windows]: [&str; 3],
    option: &str,
) -> Result<PathBuf, CommandFailure> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set(variable)
        .filter(|path| path.is_absolute())
        .or_else(|| set("HOME").map(|home| home.join(in_home)))
        .or_else(|| set(on_windows));
    Ok(folder.ok_or_else(|| failures::no_home_folder(option))?.join("aaep"))
}

/// Creates the folder for this file, for its owner only. An existing folder stays unchanged.
pub(crate) fn make_folder_of(file: &Path) -> io::Result<()> {
    let Some(folder) = file.parent().filter(|it| !it.as_os_str().is_empty()) else {
        return Ok(());
    };
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
