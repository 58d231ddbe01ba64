//! Advice on command lines that could not be parsed.
use super::named::is_field;
use super::{synonyms, text};
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use ferrite::operators::operator_named;
use ferrite_inputs::{InputKind, Schema};
use std::ffi::OsString;
use std::path::Path;

/// Returns the arguments with a command that follows `--help` moved in front of it: `ferrite --help solve` becomes `ferrite solve --help`.
pub fn rearranged(arguments: &[OsString], program: &Command) -> Vec<OsString> {
    let mut all = arguments.to_vec();
    let is_command =
        |word: &OsString| word.to_str().is_some_and(|word| word == "help" || program.find_subcommand(word).is_some());
    if let [_, help, command, ..] = &mut all[..]
        && ["--help", "-h"].iter().any(|flag| help.as_os_str() == *flag)
        && is_command(command)
    {
        std::mem::swap(help, command);
    }
    all
}

/// Returns an error of clap with Ferrite's advice, if there is any. The advice replaces the suggestion of clap, which depends on spelling
/// only.
pub fn explained(mut error: clap::Error, arguments: &[OsString], program: &Command) -> clap::Error {
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let argument = text(ContextKind::InvalidArg).unwrap_or_default();
    let (command, called) = command_of(&words, program);
    let advice = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let name = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            // Clap suggests nothing for an unknown command after `help`, so `closest` looks for a similar one.
            let close = || (words.first() == Some(&"help")).then(|| closest(&name, program)).flatten();
            // Advice on names of other programs' commands, and on files without a command, proposes commands of `ferrite`, so other
            // programs do not give it.
            let known = (program.get_name() == "ferrite").then(|| of_command(&name, &words)).flatten();
            known.or_else(close)
        }
        ErrorKind::UnknownArgument => of_argument(&argument, &words, (command, program), &called),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let value = text(ContextKind::InvalidValue).unwrap_or_default();
            of_value(&argument, &value, &called).or_else(|| of_separated(&argument, &words, command))
        }
        _ => None,
    };
    // Clap suggests how to pass the unknown word as a value. This advice is removed, because names of files do not begin with hyphens.
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested);
    }
    if let Some(advice) = advice {
        for kind in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue] {
            error.remove(kind);
        }
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.into()]));
        // The usage line is rendered again, because the line of clap contains the flag that clap suggested by spelling.
        if error.remove(ContextKind::Usage).is_some() {
            let usage = command.clone().bin_name(called).render_usage();
            error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
        }
    }
    error
}

/// Returns advice on an unknown command, which may be the name of another program or a file without a command.
fn of_command(name: &str, words: &[&str]) -> Option<String> {
    if words.first() == Some(&"bench") && ["accuracy", "model", "rhmc"].contains(&name) {
        return Some(format!(
            "run 'ferrite-studies {name}'; `cargo build --release --package ferrite-studies` builds this program"
        ));
    }
    if let Some(sentence) = synonyms::of_command(name) {
        let files = words.iter().skip(1).filter(|word| Path::new(word).is_file());
        let input = files.filter_map(|word| Some((InputKind::of(Path::new(word))?, word))).next();
        if let (true, Some((kind, input))) = (name == "run", input) {
            return Some(format!("did you mean '{} {input}{}'?", kind.usage(), kind.folder()));
        }
        let file = words.iter().find(|word| Path::new(word).is_file());
        return Some(file.map_or_else(|| sentence.into(), |file| sentence.replace("FILE", file)));
    }
    let path = Path::new(name);
    let is_named_so = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("toml"));
    if is_field(path) {
        return Some(format!(
            "put a command before the file, such as 'ferrite verify {name}' or 'ferrite measure {name}'"
        ));
    }
    (path.is_file() || is_named_so).then(|| match InputKind::of(path) {
        Some(kind) => format!("put a command before the file: {} {name}{}", kind.usage(), kind.folder()),
        None => format!("put a command before the file, such as 'ferrite solve {name}' or 'ferrite check {name}'"),
    })
}

/// Returns the command with the most similar spelling, if it is similar enough.
fn closest(name: &str, program: &Command) -> Option<String> {
    let close = |command: &str| strsim::jaro_winkler(name, command);
    let names = program.get_subcommands().map(Command::get_name);
    let best = names.max_by(|a, b| close(a).total_cmp(&close(b)))?;
    (close(best) > 0.8).then(|| format!("did you mean '{} help {best}'?", program.get_name()))
}

/// Returns advice on a value that a flag does not take.
fn of_value(argument: &str, value: &str, called: &str) -> Option<String> {
    let flag = argument.split(' ').next().unwrap_or(argument);
    if called == "ferrite init" && !flag.starts_with("--") && operator_named(value).is_some() {
        return Some(format!(
            "{value} is an operator; name the command that will read the input, such as rhmc: ferrite init rhmc"
        ));
    }
    if flag.starts_with("--") && value.starts_with("--") {
        return Some(format!("{flag} needs a value, but the next word is the flag {value}"));
    }
    // A flag that takes a list or a range does not take a number, so the hint on decimal commas does not apply to it.
    let hint = text::number_hint(value);
    (!hint.is_empty() && !argument.contains([',', ':'])).then(|| hint.trim_start_matches("; ").into())
}

/// Returns the command that the first words name, with its full name.
fn command_of<'c>(words: &[&str], program: &'c Command) -> (&'c Command, String) {
    let (mut command, mut name) = (program, program.get_name().to_string());
    for word in words {
        if let Some(below) = command.find_subcommand(word) {
            name += &format!(" {}", below.get_name());
            command = below;
        }
    }
    (command, name)
}

/// Returns advice on an argument that the command does not have.
fn of_argument(
    argument: &str,
    words: &[&str],
    (command, program): (&Command, &Command),
    called: &str,
) -> Option<String> {
    let flags: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    if ["-n", "-np", "-N", "--np", "--nprocs", "--ntasks", "--processes"].contains(&argument) {
        return Some(format!("set the number of processes with mpirun: mpirun -n 4 {called} ..."));
    }
    let Some(flag) = argument.strip_prefix("--") else {
        let is_long =
            |name: &str| flags.contains(&name) || program.get_arguments().any(|arg| arg.get_long() == Some(name));
        let one_hyphen = words.iter().filter_map(|word| word.strip_prefix('-')).find(|name| {
            name.len() > 2 && is_long(name.split('=').next().unwrap_or(name)) || ["version", "help"].contains(name)
        });
        return match one_hyphen.filter(|_| argument.starts_with('-')) {
            Some(name) => Some(format!("long flags begin with two hyphens: --{name}")),
            None => of_separated(argument, words, command).or_else(|| of_name(argument, words, &flags, called)),
        };
    };
    let flag = flag.split('=').next().unwrap_or(flag);
    let value = value_of(argument, words);
    if called == "ferrite" {
        let file = value.as_deref().unwrap_or("run.toml");
        let names_file = ["input", "file", "config", "in", "i", "f"].contains(&flag);
        let kind = InputKind::of(Path::new(file)).unwrap_or(InputKind::Solve);
        let (command, folder) = (kind.usage(), kind.folder());
        return names_file
            .then(|| format!("put a command first, and the file without a flag: {command} {file}{folder}"));
    }
    if let Some(meant) = synonyms::of_key(flag, &flags) {
        return Some(match (meant.name, meant.note) {
            (Some(name), Some(note)) => format!("did you mean '--{name}'? Note: {note}"),
            (Some(name), None) => format!("did you mean '--{name}'?"),
            (None, note) => note.unwrap_or_default().into(),
        });
    }
    let positional = command.get_positionals().next();
    let is_file =
        ["input", "file", "gauge", "config", "configuration", "cfg", "gauge-file", "infile", "in", "input-file"];
    if let Some(positional) = positional.filter(|_| is_file.contains(&flag)) {
        let name = value.unwrap_or_else(|| positional.get_id().as_str().to_uppercase());
        return Some(format!("name the file without a flag: {called} {name}"));
    }
    let schema: &Schema = match called {
        "ferrite rhmc" | "ferrite forces" => &ferrite_tasks::ensemble::input::ENSEMBLE_SCHEMA,
        "ferrite spectrum" => &ferrite_tasks::spectrum::SPECTRUM_SCHEMA,
        _ => return None,
    };
    let names = schema.all_names();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let named = known.iter().find(|key| key.rsplit('.').next() == Some(flag)).map(|key| (*key).to_string());
    let key = named.or_else(|| synonyms::of_key(flag, &known)?.name)?.replace('*', "0");
    let value = value.unwrap_or_else(|| "VALUE".into());
    Some(format!("change keys of the input with --set: --set {key}={value}"))
}

/// Returns advice on a superfluous name, which is probably that of an output file or of the initial links.
fn of_name(name: &str, words: &[&str], flags: &[&str], called: &str) -> Option<String> {
    if called == "ferrite rhmc" && is_field(Path::new(name)) {
        return Some(format!("the key start of the input names the initial links: --set start={name}"));
    }
    let is_free = |flag: &str, short: &str| {
        let given = |word: &&str| *word == short || word.starts_with(&format!("--{flag}"));
        flags.contains(&flag) && !words.iter().any(given)
    };
    match name {
        _ if name.starts_with('-') => None,
        _ if is_free("output", "-o") => Some(format!("name the output file with -o: -o {name}")),
        _ if is_free("out", "-o") => Some(format!("name the folder of results with --out: --out {name}")),
        _ => None,
    }
}

/// Returns the value that follows a flag, after a space or `=`.
fn value_of(flag: &str, words: &[&str]) -> Option<String> {
    let place = words.iter().position(|word| word.split('=').next() == flag.split('=').next())?;
    let value = match words[place].split_once('=') {
        Some((_, value)) => value,
        None => words.get(place + 1).filter(|next| !next.starts_with('-'))?,
    };
    Some(value.into())
}

/// Returns advice on the numbers of a flag of `command` that are separated by spaces: `--lattice 4 4 4 8`.
fn of_separated(argument: &str, words: &[&str], command: &Command) -> Option<String> {
    let is_number = |word: &&&str| word.trim_matches(',').parse::<f64>().is_ok();
    let flag = argument.split(' ').next().filter(|word| word.starts_with("--"));
    let place = match flag {
        Some(flag) => words.iter().position(|word| *word == flag)?,
        None => {
            let at = words.iter().position(|word| *word == argument).filter(|at| is_number(&&words[*at]))?;
            // Numbers before the reported one also belong to the list.
            let before = words[..at].iter().rev().take_while(is_number).count();
            at.checked_sub(before + 1)?
        }
    };
    let numbers: Vec<&str> =
        words[place + 1..].iter().take_while(is_number).map(|word| word.trim_matches(',')).collect();
    let flag = words[place];
    let long = flag.strip_prefix("--").filter(|_| numbers.len() > 1)?;
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(long));
    let is_named_with = |part: &str| arg.is_some_and(|arg| is_named_with(arg, part));
    let takes_list =
        is_named_with(",") || is_named_with("NUMBERS") || arg.is_none_or(|arg| arg.get_value_delimiter().is_some());
    let (mark, name) = match (is_named_with(":"), takes_list) {
        (true, _) => (":", "a colon"),
        (false, true) => (",", "commas"),
        // The flag takes one number.
        (false, false) => return None,
    };
    Some(format!("join the numbers of a flag with {name}: {flag} {}", numbers.join(mark)))
}

/// Returns whether a name of an argument's values, such as `X,Y,Z,T` or `A:B`, contains a text.
fn is_named_with(arg: &clap::Arg, part: &str) -> bool {
    arg.get_value_names().is_some_and(|names| names.iter().any(|name| name.contains(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_spaces_are_joined() {
        let flag = |name: &'static str, values: &'static str| clap::Arg::new(name).long(name).value_name(values);
        let command =
            Command::new("test").args([flag("lattice", "X,Y,Z,T"), flag("window", "A:B"), flag("levels", "N")]);
        let advice = |argument: &str, words: &[&str]| of_separated(argument, words, &command);
        let words = ["generate", "unit", "--lattice", "4", "4", "4", "8", "-o", "a.ildg"];
        let expected = Some("join the numbers of a flag with commas: --lattice 4,4,4,8".to_string());
        assert_eq!(advice("4", &words), expected);
        assert_eq!(advice("8", &words), expected);
        assert_eq!(advice("--lattice <X,Y,Z,T>", &words), expected);
        assert_eq!(advice("9", &words), None);
        assert_eq!(advice("4", &["plaquette", "a.ildg", "4"]), None);
        let window = Some("join the numbers of a flag with a colon: --window 2:4".to_string());
        assert_eq!(advice("--window <A:B>", &["fit", "found", "--window", "2", "4"]), window);
        assert_eq!(advice("3", &["smear", "a.ildg", "--levels", "2", "3"]), None);
    }

    #[test]
    fn values_of_flags() {
        assert_eq!(value_of("--input", &["--input", "run.toml"]).as_deref(), Some("run.toml"));
        assert_eq!(value_of("--input", &["--input=run.toml"]).as_deref(), Some("run.toml"));
        assert_eq!(value_of("--input", &["--input", "--json"]), None);
    }
}
