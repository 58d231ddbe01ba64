//! Beginning of a log. It identifies what made the numbers, even years later: program, commit, command, input and devices.
use std::io::IsTerminal;
use std::sync::Once;
use tracing::{debug, info};

/// Commit from which the program was built, as recorded by the build script: `e3cb33b123`, or `e3cb33b123 or later` if parts may have been
/// compiled later. `None` without a repository.
pub const COMMIT: Option<&str> = option_env!("FERRITE_BUILT_FROM");

/// Returns name, version and commit of the program.
pub fn program() -> String {
    let version = env!("CARGO_PKG_VERSION");
    COMMIT.map_or_else(|| format!("ferrite {version}"), |commit| format!("ferrite {version}, commit {commit}"))
}

/// Returns the cargo features of this build.
pub fn features() -> Vec<&'static str> {
    let features = [("cuda", cfg!(feature = "cuda")), ("mpi", cfg!(feature = "mpi")), ("hdf5", cfg!(feature = "hdf5"))];
    features.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
}

/// Returns the architecture and operating system for which the program was built.
pub fn target() -> String {
    format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS)
}

/// Logs the program and its devices once. The message has one line; with `-v` it also has the command, the input, the features and a line
/// for each device. `why` is the reason why a GPU of the machine is not used; it is also printed on a terminal.
pub fn note(input: &[String], places: &[String], why: Option<&str>) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let place = match places {
            [place] => place.clone(),
            [first, .., last] => format!("{first}; …; {last}"),
            [] => String::new(),
        };
        let line = format!("{}; {}; {place}", program(), ferrite::system::utc_now());
        match (std::io::stderr().is_terminal(), why) {
            (true, None) => debug!("{line}"),
            (true, Some(why)) => {
                debug!("{line}");
                info!("{why}");
            }
            (false, None) => info!("{line}"),
            (false, Some(why)) => info!("{line}; {why}"),
        }
        let features = features();
        let features = if features.is_empty() { "none".into() } else { features.join(", ") };
        debug!("built for {}, features: {features}", target());
        debug!("command: {}", command(std::env::args()));
        input.iter().for_each(|line| debug!("input: {line}"));
        if places.len() > 1 {
            places.iter().for_each(|place| debug!("{place}"));
        }
    });
}

/// Returns the arguments of a command as a shell would accept them, after the program's name without its folder.
fn command(arguments: impl Iterator<Item = String>) -> String {
    let plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_=+,.:/@%".contains(c));
    let quoted = |text: String| if plain(&text) { text } else { format!("'{}'", text.replace('\'', r"'\''")) };
    let rest = arguments.skip(1).map(quoted);
    std::iter::once("ferrite".to_string()).chain(rest).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn commands_can_be_typed_again() {
        let words = ["/usr/bin/ferrite", "solve", "--set", "source=[\"random:1\"]", "it's", "", "a,b"];
        let text = command(words.into_iter().map(String::from));
        assert_eq!(text, r#"ferrite solve --set 'source=["random:1"]' 'it'\''s' '' a,b"#);
    }
}
