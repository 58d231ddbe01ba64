//! Flags of a solve and of similar commands, made from the table of [keys](ferrite_tasks::keys), and the input that `ferrite init` prints.
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use ferrite::operators::{Key, KeyKind};
use ferrite_inputs::Input;
pub use ferrite_tasks::keys::*;

/// Flags by key, with their values as typed.
#[derive(Clone, Debug, Default)]
struct TypedFlags(Vec<(&'static str, Vec<String>)>);

impl TypedFlags {
    fn of<'k>(matches: &ArgMatches, keys: impl Iterator<Item = &'k &'static Key>) -> Self {
        let value = |key: &&'static Key| {
            let texts: Vec<String> = match key.kind {
                KeyKind::Switch => {
                    if matches.try_get_one::<bool>(key.name).ok().flatten().copied().unwrap_or(false) {
                        vec!["true".into()]
                    } else {
                        Vec::new()
                    }
                }
                _ => matches.try_get_many::<String>(key.name).ok().flatten().into_iter().flatten().cloned().collect(),
            };
            (!texts.is_empty()).then_some((key.name, texts))
        };
        TypedFlags(keys.filter_map(value).collect())
    }
    fn add_to(&self, input: &mut Input) {
        self.0.iter().for_each(|(key, texts)| input.flags(key, texts));
    }
}

/// Returns the clap argument for a key.
fn flag(key: &'static Key, heading: Option<&'static str>) -> Arg {
    let arg = Arg::new(key.name).long(key.name).help(key.help).help_heading(heading);
    let arg = if key.name == "output" { arg.short('o') } else { arg };
    match key.kind {
        KeyKind::Switch => arg.action(ArgAction::SetTrue),
        KeyKind::Texts => arg.action(ArgAction::Append).value_name(key.value),
        KeyKind::Text => arg.action(ArgAction::Set).value_name(key.value),
        _ => arg.action(ArgAction::Set).value_name(key.value).allow_hyphen_values(true),
    }
}

macro_rules! flags {
    ($(#[$doc:meta])* $name:ident: $sections:expr, without $without:expr;) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $name(TypedFlags);

        impl $name {
            /// Adds the flags that were typed to an input.
            pub fn add_to(&self, input: &mut Input) {
                self.0.add_to(input);
            }
        }
        impl Args for $name {
            fn augment_args(command: Command) -> Command {
                let flags = |section: &'static KeySection| section.keys.iter().map(|key| (*key, section.heading));
                let flags = $sections.flat_map(flags).filter(|(key, _)| !$without.contains(&key.name));
                command.args(flags.map(|(key, heading)| flag(key, heading)))
            }
            fn augment_args_for_update(command: Command) -> Command {
                Self::augment_args(command)
            }
        }
        impl FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                let keys = $sections.flat_map(|section| &section.keys);
                Ok($name(TypedFlags::of(matches, keys.filter(|key| !$without.contains(&key.name)))))
            }
            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }
    };
}

flags! {
    /// Flags of an operator and its fields, as typed, for a command that applies operators. `--schur` is left out, because the command has
    /// a flag of this name.
    FieldFlags: FIELDS.iter(), without ["schur"];
}
flags! {
    /// All flags of a solve, as typed.
    SolveFlags: sections(), without [""];
}

flags! {
    /// Flags of an operator, as typed, for commands that name configurations and have their own fields.
    OperatorFlags: FIELDS.iter(),
        without ["gauge", "fat", "long", "source", "sources", "precision", "reconstruct", "output"];
}
flags! {
    /// Flags of an operator and of its solver, as typed, for commands that name configurations.
    SolverFlags: sections(),
        without [
            "gauge", "fat", "long", "source", "sources", "output", "guess", "shifts", "setup", "save-source", "plot",
            "keep-unconverged", "profile",
        ];
}

/// Keys that have values in the input that `ferrite init solve` prints; all other keys are comments there.
const SET: [&str; 8] = ["gauge", "operator", "mass", "csw", "bc-time", "source", "tol", "output"];

/// Returns an input of `ferrite solve` with all keys.
pub fn input() -> String {
    let mut text = String::from(
        "# Input of `ferrite solve FILE`: the keys are the flags of the command. All numbers are in lattice units. \
         Keys with a # are\n# optional and show an example value.\n",
    );
    for section in sections() {
        text += &format!("\n# == {}\n", section.comment);
        for key in &section.keys {
            for line in wrapped(key.help, 116) {
                text += &format!("#  {line}\n");
            }
            let (name, example) = (key.name, key.example);
            text += &match (key.instead_of, SET.contains(&name)) {
                // A key that cannot be combined with `other`, which has a value in this input, is written as a comment.
                (Some(other), _) => format!("#  instead of {other}: {name} = {example}\n"),
                (None, true) => format!("{name} = {example}\n"),
                (None, false) => format!("# {name} = {example}\n"),
            };
        }
    }
    text + "\n" + EXAMPLES_OF_EVERY_INPUT
}

/// Keys that every input has, as in the input that `ferrite init solve` prints.
const EXAMPLES_OF_EVERY_INPUT: &str = "\
# == Keys of every input.
# backend = \"auto\"            # cuda, cpu; auto uses a GPU if one works
# device = 0
# threads = 8                 # default: all
# memory = \"20GiB\"            # of the device; default: all free memory
# tuning = \"on\"               # block sizes measured by `ferrite tune`
# grid = [1, 1, 1, 1]         # processes in each direction; default: the grid with the smallest faces
# transport = \"direct\"        # copy, mpi, host; default: the fastest
# no-overlap = false
# share-gpus = false
";

/// Wraps words into lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}
