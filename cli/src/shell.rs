//! Commands `ferrite completions` and `ferrite man`: the command line for shells and as manual pages.
use super::plan::{OUTER_PRECISIONS, PRECISIONS, RECONSTRUCTIONS, STRATEGIES};
use super::{Cli, Context, Failure, Outcome, bench, target};
use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use ferrite::hmc::action::ActionName;
use ferrite::hmc::integrator::{MINIMUM_NORM, Scheme};
use ferrite::operators::{BOUNDARIES, OPERATORS, PHASES, SCHURS};
use ferrite::solve::METHODS;
use ferrite_records::program::{CompletionsRecord, ManRecord};
use std::path::PathBuf;

const COMPLETIONS: &str = "\
Examples:
  ferrite completions bash > ~/.local/share/bash-completion/completions/ferrite
  ferrite completions zsh > ~/.zfunc/_ferrite
  ferrite completions fish > ~/.config/fish/completions/ferrite.fish";

const PAGES: &str = "\
Examples:
  ferrite man ~/.local/share/man/man1
  man ferrite-solve";

/// Arguments of `completions`.
#[derive(Args)]
#[command(after_help = COMPLETIONS)]
pub struct CompletionArguments {
    /// Shell: bash, zsh, fish, elvish or powershell
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Args)]
#[command(after_help = PAGES)]
pub struct ManArguments {
    /// Folder for the pages; created if it does not exist
    folder: PathBuf,
}

/// Prints the script with the completions for a shell.
pub fn completions(args: &CompletionArguments, context: &Context) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut with_values(Cli::command()), "ferrite", &mut script);
    let text = String::from_utf8_lossy(&script).into_owned();
    let record = CompletionsRecord { shell: args.shell.to_string(), script: text };
    context.output.document(&record, &record.script)
}

/// Adds to a command the names that its flags take as values, for completions. Clap does not know some of these values, because they are
/// checked together with those of input files.
fn with_values(mut command: clap::Command) -> clap::Command {
    let name = command.get_name().to_string();
    let of_arg = |arg: &clap::Arg| Some((arg.get_id().clone(), values(&name, arg.get_long()?)));
    let known: Vec<_> = command.get_arguments().filter_map(of_arg).filter(|(_, values)| !values.is_empty()).collect();
    for (id, values) in known {
        // The leaked texts live until the program ends, which is right after it prints the script.
        let values: Vec<&'static str> = values.into_iter().map(|value| &*value.leak()).collect();
        command = command.mut_arg(id, |arg| arg.value_parser(PossibleValuesParser::new(values)));
    }
    command.mut_subcommands(with_values)
}

/// Returns the names that a flag of a command takes as values; for `--set`, the names of keys; empty for other flags.
fn values(command: &str, flag: &str) -> Vec<String> {
    fn names<T>(choices: &[(&str, T)]) -> Vec<String> {
        choices.iter().map(|(name, _)| (*name).to_string()).collect()
    }
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_string()).collect();
    let operators = || OPERATORS.iter().map(|definition| definition.name.to_string());
    let methods = || METHODS.iter().map(|method| method.name.to_string()).collect::<Vec<_>>();
    let keys = |key: &str, values: Vec<String>| -> Vec<String> {
        values.into_iter().map(|value| format!("{key}={value}")).collect()
    };
    // In these commands, flags for an operator, a solver or a precision accept every name.
    let is_of_operator = matches!(command, "solve" | "apply" | "trace" | "eigenvalues");
    match flag {
        "backend" => words(&["auto", "cuda", "cpu"]),
        "tuning" => words(&["on", "off"]),
        "transport" => words(&["direct", "copy", "mpi", "host"]),
        "operator" if is_of_operator => operators().collect(),
        "operator" if matches!(command, "dslash" | "tune" | "halo") => bench::timed_operators(),
        "solver" if is_of_operator => methods(),
        "precision" if is_of_operator || matches!(command, "dslash" | "blas" | "tune") => names(&PRECISIONS),
        "precision" if matches!(command, "generate" | "convert" | "asqtad" | "hisq") => words(&["single", "double"]),
        "domain-precision" => names(&PRECISIONS),
        "mg-precision" => words(&["half", "single"]),
        "outer" => names(&OUTER_PRECISIONS),
        "reconstruct" => names(&RECONSTRUCTIONS),
        "correction" => words(&["reliable", "defect"]),
        "shift-solver" => names(&STRATEGIES),
        "bc-time" => names(&BOUNDARIES),
        "phases" => names(&PHASES),
        "schur" => names(&SCHURS),
        "start" if command == "generate" => words(&["cold", "hot"]),
        "source" if is_of_operator => words(&["point:0,0,0,0", "random:1", "file:"]),
        "set" if matches!(command, "rhmc" | "forces") => {
            let integrators = names(&Scheme::named(MINIMUM_NORM));
            let quarks = ferrite_tasks::ensemble::quark_operators().map(String::from).collect();
            [
                keys("gauge.action", names(&ActionName::ALL)),
                keys("trajectory.integrator", integrators),
                keys("fermion.0.operator", quarks),
            ]
            .concat()
        }
        "set" if command == "spectrum" => [
            keys("source", names(&ferrite_tasks::spectrum::SOURCES)),
            keys("solve.operator", operators().collect()),
            keys("solve.solver", methods()),
            keys("solve.precision", names(&PRECISIONS)),
        ]
        .concat(),
        _ => Vec::new(),
    }
}

/// Writes a manual page for the program and for each command.
pub fn man(args: &ManArguments, context: &Context) -> Outcome {
    context.comm.only_one("ferrite man")?;
    let folder = &args.folder;
    let failed =
        |why: std::io::Error| Failure::failed(format!("the folder {} cannot be created: {why}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut command = Cli::command();
    command.build();
    let mut files = Vec::new();
    pages(&command, "ferrite", &mut |name, page| {
        let path = folder.join(format!("{name}.1"));
        target::write_bytes(&path, page).map_err(Failure::failed)?;
        files.push(path);
        Ok(())
    })?;
    let text = format!("{} pages in {}\n", files.len(), folder.display());
    context.output.record(&ManRecord { files }, || text)
}

/// Writes the manual page of a command and of its subcommands.
fn pages(command: &clap::Command, name: &str, write: &mut impl FnMut(&str, &[u8]) -> Outcome) -> Outcome {
    let mut page = Vec::new();
    let title = command.clone().display_name(name.to_string());
    Man::new(title).render(&mut page).map_err(|why| Failure::failed(format!("page of {name}: {why}")))?;
    write(name, &page)?;
    // The command `help` is left out, because its text is that of the other pages.
    let mut below = command.get_subcommands().filter(|below| below.get_name() != "help");
    below.try_for_each(|below| pages(below, &format!("{name}-{}", below.get_name()), write))
}
