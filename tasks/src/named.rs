//! Files as named on a command line or in an input. Their content shows whether they are inputs or fields. A pattern that no shell has
//! expanded stands for all files that match it.
use super::communicator::RunCommunicator;
use super::{Failure, Outcome};
pub use ferrite_inputs::files::{advice_on_pattern, is_field, matches};
use std::path::PathBuf;

/// Input and configuration of a command that takes one of each, in either order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NamedFiles {
    /// Path of the input in TOML.
    pub input: Option<PathBuf>,
    /// Path of the gauge configuration.
    pub configuration: Option<PathBuf>,
}

impl NamedFiles {
    /// Determines which file is the input and which the configuration.
    ///
    /// # Errors
    /// Two inputs or two configurations, with the name of the `command` in the message; a file that does not exist beside another one.
    pub fn of(files: &[PathBuf], command: &str) -> Outcome<Self> {
        let mut named = Self::default();
        for path in files {
            let (place, what) = if is_field(path) {
                (&mut named.configuration, "configurations")
            } else {
                (&mut named.input, "inputs")
            };
            if let Some(other) = place.replace(path.clone()) {
                if let Some(absent) = [&other, path].into_iter().find(|path| !path.exists()) {
                    return Err(Failure::refused(format!("the file {} does not exist", absent.display())));
                }
                let advice = match what {
                    "configurations" => "; `ferrite spectrum`, `trace`, `eigenvalues` and `measure` take several",
                    _ => "; name one of them",
                };
                return Err(Failure::refused(format!(
                    "{} and {} are both {what}, but `ferrite {command}` reads only one{advice}",
                    other.display(),
                    path.display()
                )));
            }
        }
        Ok(named)
    }
}

/// *Collective.* Returns the files that names and patterns stand for, as the first process finds them.
pub fn all_matches(names: &[PathBuf], comm: &RunCommunicator) -> Outcome<Vec<PathBuf>> {
    if !names.iter().any(|name| name.to_string_lossy().contains(['*', '?', '['])) {
        return Ok(names.to_vec());
    }
    let mut mine = Vec::new();
    comm.once(|| {
        for name in names {
            mine.extend(matches(&name.to_string_lossy()).map_err(Failure::refused)?);
        }
        Ok(())
    })?;
    of_first(mine, comm)
}

/// *Collective.* Returns the first process's list on all processes, because other processes may see an earlier state of a folder.
pub fn of_first(mine: Vec<PathBuf>, comm: &RunCommunicator) -> Outcome<Vec<PathBuf>> {
    if comm.size() == 1 {
        return Ok(mine);
    }
    let mine: Vec<_> = mine.iter().map(|path| path.to_string_lossy()).collect();
    let mine = serde_json::to_string(&mine).map_err(Failure::failed)?;
    let first = comm.texts(&mine)?.swap_remove(0);
    serde_json::from_str(&first)
        .map_err(|why| Failure::failed(format!("the processes could not exchange file names: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_files() {
        let room = std::env::temp_dir().join(format!("ferrite-named-{}", std::process::id()));
        std::fs::create_dir_all(room.join("cfg0.ildg")).unwrap();
        for name in ["cfg2.ildg", "cfg10.ildg", "other.toml", "with[1].ildg"] {
            std::fs::write(room.join(name), "text").unwrap();
        }
        let found = |pattern: &str| {
            let all = matches(&room.join(pattern).to_string_lossy())?;
            Ok::<_, String>(all.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect())
        };
        let of = |names: &[&str]| Ok(names.iter().map(|name| (*name).to_string()).collect::<Vec<_>>());
        // Folders are no files.
        assert_eq!(found("cfg*.ildg"), of(&["cfg2.ildg", "cfg10.ildg"]));
        assert_eq!(found("cfg[12]*.ildg"), of(&["cfg2.ildg", "cfg10.ildg"]));
        // A file of just this name is meant by it, and a name that is no pattern by itself.
        assert_eq!(found("with[1].ildg"), of(&["with[1].ildg"]));
        assert_eq!(found("absent.ildg"), of(&["absent.ildg"]));
        assert!(found("conf*").unwrap_err().ends_with("conf*: no file matches this pattern"));
        assert!(found("absent/conf*").unwrap_err().contains("the folder"));
        assert!(found("cfg[").unwrap_err().contains("is not a valid pattern of file names"));
        let files =
            |names: &[&str]| NamedFiles::of(&names.iter().map(|name| room.join(name)).collect::<Vec<_>>(), "solve");
        let named = files(&["other.toml", "absent.ildg"]).unwrap();
        assert_eq!((named.input, named.configuration), (Some(room.join("other.toml")), Some(room.join("absent.ildg"))));
        std::fs::write(room.join("a.npy"), b"\x93NUMPY").unwrap();
        std::fs::write(room.join("b.npy"), b"\x93NUMPY").unwrap();
        assert!(files(&["a.npy", "b.npy"]).unwrap_err().message.contains("are both configurations"));
        assert!(files(&["a.npy", "absent.ildg"]).unwrap_err().message.starts_with("the file"));
        // Text under the name of a field may be an input.
        assert!(files(&["cfg2.ildg"]).unwrap().configuration.is_none());
        std::fs::remove_dir_all(room).unwrap();
    }
}
