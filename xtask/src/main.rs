//! Project tasks, run as `cargo xtask <command>`: kernels to PTX, checks, tests, demonstration, benchmark.
//!
//! Each command has its own module; this file only selects one. The same program also serves as the linker of the
//! kernel build (see [`linker`]).

mod book;
mod build_ptx;
mod capi;
mod check_ptx;
mod demo;
mod dependencies;
mod dist;
mod embed;
mod kernel_families;
mod linker;
mod packages;
mod process;
mod ptxas;
mod python;
mod registers;
mod rooms;
mod setup;
mod test;
mod toolchain;
mod unsafe_rooms;
mod words;

use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
Project tasks of Ferrite.

Usage: cargo xtask <command> [options]      (cargo xtask <command> --help explains one)

  setup       install the kernel compiler, ptxas and MPI, if missing
  build-ptx   compile the GPU kernels to target/kernels
  check-ptx   show registers, stack, spills and memory accesses of every kernel; fail on a slow one
  test        run everything that continuous integration runs
  demo        generate a gauge field, verify it, solve the Dirac equation on it, plot the convergence
  bench       time the Dirac operators on this machine
  book        build the book of docs/, and run every command in it
  dist        make an archive that runs on other machines
  wheel       make the Python package
  capi        make the libraries for C
  words       list words that docs/style.md rules out
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = if linker::wanted() { linker::link(&args) } else { dispatch(&args) };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("--help", args),
    };
    type Command = (&'static str, fn(&[String]) -> Result<()>);
    let (help, run): Command = match command {
        "setup" => (setup::SETUP_HELP, setup::run),
        "build-ptx" => (build_ptx::BUILD_PTX_HELP, build_ptx::run),
        "check-ptx" => (check_ptx::CHECK_PTX_HELP, check_ptx::run),
        "test" => (test::TEST_HELP, test::run),
        "demo" => (demo::DEMO_HELP, demo::demo),
        "bench" => (demo::BENCH_HELP, demo::bench),
        "book" => (book::BOOK_HELP, book::run),
        "dist" => (dist::DIST_HELP, dist::run),
        "wheel" => (python::WHEEL_HELP, python::run),
        "capi" => (capi::CAPI_HELP, capi::run),
        "words" => (words::WORDS_HELP, words::run),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            return Ok(());
        }
        other => bail!("there is no command '{other}'; `cargo xtask --help` lists the commands"),
    };
    // Arguments after `--` belong to the program that the command starts.
    if rest.iter().take_while(|a| *a != "--").any(|a| a == "--help" || a == "-h") {
        print!("{help}");
        return Ok(());
    }
    run(rest)
}
