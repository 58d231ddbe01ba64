//! `ferrite completions` and `ferrite man`: what shells and readers want to know of the command line.
use super::{Cli, Context, Failure, Outcome, target};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::json;
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
    /// bash, zsh, fish, elvish or powershell
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Args)]
#[command(after_help = PAGES)]
pub struct ManArguments {
    /// Folder for the pages, made if it is not there
    folder: PathBuf,
}

/// Prints completions.
pub fn completions(args: &CompletionArguments, context: &Context) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ferrite", &mut script);
    let text = String::from_utf8_lossy(&script).into_owned();
    let object = json!({ "shell": args.shell.to_string(), "script": text });
    context.output.document("ferrite.completions/1", object, &text)
}

/// Writes a page for the program and for each command.
pub fn man(args: &ManArguments, context: &Context) -> Outcome {
    context.comm.only_one("man")?;
    let folder = &args.folder;
    let failed = |why: std::io::Error| Failure::failed(format!("{} cannot be written: {why}", folder.display()));
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
    context.output.result("ferrite.man/1", json!({ "files": files }), || text)
}

/// The page of a command, and those of the commands below it.
fn pages(command: &clap::Command, name: &str, write: &mut impl FnMut(&str, &[u8]) -> Outcome) -> Outcome {
    let mut page = Vec::new();
    let title = command.clone().display_name(name.to_string());
    Man::new(title).render(&mut page).map_err(|why| Failure::failed(format!("the page of {name}: {why}")))?;
    write(name, &page)?;
    // `help` says what the pages say.
    let mut below = command.get_subcommands().filter(|below| below.get_name() != "help");
    below.try_for_each(|below| pages(below, &format!("{name}-{}", below.get_name()), write))
}
