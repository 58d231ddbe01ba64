//! `cargo xtask book`: builds the book, and runs every command in it.
//!
//! The language of a fenced block, and a comment before it, determine how the block is checked: CONTRIBUTING.md has the
//! list.

mod keys;
mod page;
mod run;
mod schemas;
mod site;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{demo, process};
use run::{Runner, Tally};

/// Help text of the command.
pub const BOOK_HELP: &str = "\
Build the book of docs/ into target/book/site, and run every command in it and in README.md, page by page, each page in a
separate folder in target/book/pages. Commands that cannot run here are marked in the page; their flags are compared with
the program's help. Links to files must exist, versioned formats of the output must be documented, and the tables of their
keys must be up to date.

Usage: cargo xtask book [--no-run | --no-site | --keys] [PAGE...]

  PAGE       run only these pages, such as docs/tutorial.md
  --no-run   build the pages only
  --no-site  run the commands only
  --keys     only rewrite the tables of keys in docs/output.md from the types of records

mkdocs builds the pages; it is installed into target/tools/book. If it cannot be installed, the pages are skipped; with
CI=true in the environment that is a failure. FERRITE_BIN names a program to use instead of building one; `ferrite-studies` must be in the same folder.
";

/// Runs the command.
pub fn run(args: &[String]) -> Result<()> {
    let mut args = args.to_vec();
    if process::take_flag(&mut args, "--keys") {
        return keys::write(&process::root()?);
    }
    let no_run = process::take_flag(&mut args, "--no-run");
    let no_site = process::take_flag(&mut args, "--no-site");
    if let Some(option) = args.iter().find(|argument| argument.starts_with('-')) {
        bail!("unknown argument '{option}'; --help lists the arguments");
    }
    let root = process::root()?;
    if !no_run {
        let program = match std::env::var_os("FERRITE_BIN") {
            Some(program) => PathBuf::from(program),
            None => demo::program_and_studies(&root)?,
        };
        run_pages(&root, &program, &args)?;
    }
    if !no_site && let Some(why) = build(&root)? {
        println!("the pages were not built: {why}");
    }
    Ok(())
}

/// Builds the pages, which checks links, and checks the list of formats and the tables of keys. If mkdocs cannot be installed,
/// returns the reason, unless that is a failure.
pub fn build(root: &Path) -> Result<Option<String>> {
    schemas::check(root)?;
    keys::check(root)?;
    match site::Mkdocs::get(root) {
        Ok(mkdocs) => {
            println!("pages: {}", mkdocs.build(root)?.display());
            Ok(None)
        }
        Err(error) if process::in_ci() => Err(error.context("mkdocs could not be installed")),
        Err(error) => Ok(Some(format!("mkdocs could not be installed ({error:#}); it needs Python's pip and network"))),
    }
}

/// Runs the commands of the given pages, or of all if none is given.
pub fn run_pages(root: &Path, program: &Path, only: &[String]) -> Result<()> {
    let mut pages = site::documents(root)?;
    // Measurements are records of runs on other machines; the other excluded pages are for developers of the repository
    // itself.
    pages.retain(|page| !page.starts_with("docs/measurements/") && page != "CHANGELOG.md");
    if let Some(unknown) = only.iter().find(|page| !pages.contains(page)) {
        bail!("there is no page '{unknown}'; the pages are {}", pages.join(", "));
    }
    pages.retain(|page| only.is_empty() || only.contains(page));
    let mut runner = Runner::new(program, &root.join("target/book/pages"), crate::HELP)?;
    let (mut all, start) = (Tally::default(), Instant::now());
    for page in &pages {
        let text = fs::read_to_string(root.join(page)).with_context(|| format!("{page} cannot be read"))?;
        let begin = Instant::now();
        let tally = runner.page(page, &text)?;
        let left_out: usize = tally.left_out.values().sum();
        if tally.commands + tally.inputs + left_out > 0 {
            let (ran, inputs) = (process::plural(tally.commands, "command"), process::plural(tally.inputs, "input"));
            println!("{page}: {ran} and {inputs} in {:.1} s, {left_out} not run", begin.elapsed().as_secs_f64());
        }
        all.add(tally);
    }
    let (ran, inputs) = (process::plural(all.commands, "command"), process::plural(all.inputs, "input"));
    println!("ran {ran} and checked {inputs} in {:.0} s", start.elapsed().as_secs_f64());
    for (reason, count) in &all.left_out {
        println!("not run: {} ({reason})", process::plural(*count, "command"));
    }
    Ok(())
}
