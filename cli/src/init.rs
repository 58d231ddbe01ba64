//! Command `ferrite init`, which prints inputs with comments.
use super::{Context, Failure, Outcome, keys};
use clap::{Args, ValueEnum};
use ferrite_records::program::InitRecord;

const EXAMPLES: &str = "\
Examples:
  ferrite init solve > solve.toml
  ferrite init rhmc > run.toml
  ferrite init rhmc --quarks clover > run.toml
  ferrite check run.toml";

/// Arguments of `init`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct InitArguments {
    /// Command that reads the input
    kind: InputCommand,
    /// Type of the quarks of the ensemble, for rhmc [default: asqtad]
    #[arg(long, value_name = "NAME", value_enum)]
    quarks: Option<InputQuarks>,
}

/// Types of quarks for which there is an input.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum InputQuarks {
    Asqtad,
    Hisq,
    Naive,
    Clover,
    Twisted,
}

impl InputQuarks {
    /// Returns the part of the input with the gauge action, the integrator and the quarks.
    fn input(self) -> &'static str {
        match self {
            InputQuarks::Asqtad => include_str!("rhmc/example/asqtad.toml"),
            InputQuarks::Hisq => include_str!("rhmc/example/hisq.toml"),
            InputQuarks::Naive => include_str!("rhmc/example/naive.toml"),
            InputQuarks::Clover => include_str!("rhmc/example/clover.toml"),
            InputQuarks::Twisted => include_str!("rhmc/example/twisted.toml"),
        }
    }
    fn are_staggered(self) -> bool {
        matches!(self, InputQuarks::Asqtad | InputQuarks::Hisq | InputQuarks::Naive)
    }
}

/// Returns the input of an ensemble with these quarks.
fn ensemble(quarks: InputQuarks) -> String {
    let (head, tail) = (include_str!("rhmc/example/head.toml"), include_str!("rhmc/example/tail.toml"));
    // Condensates are measured for staggered quarks only, and `batch` counts their noise vectors.
    let is_used =
        |line: &&str| quarks.are_staggered() || !["condensate =", "# batch ="].iter().any(|key| line.starts_with(key));
    let tail: Vec<&str> = tail.lines().filter(is_used).collect();
    format!("{head}{}{}\n", quarks.input(), tail.join("\n"))
}

/// Commands for which there is an input.
#[derive(Clone, Copy, ValueEnum)]
enum InputCommand {
    Solve,
    #[value(alias = "hmc")]
    Rhmc,
    Spectrum,
}

impl InputCommand {
    fn name(self) -> &'static str {
        match self {
            InputCommand::Solve => "solve",
            InputCommand::Rhmc => "rhmc",
            InputCommand::Spectrum => "spectrum",
        }
    }
    fn input(self, quarks: InputQuarks) -> String {
        match self {
            InputCommand::Solve => keys::input(),
            InputCommand::Rhmc => ensemble(quarks),
            InputCommand::Spectrum => include_str!("spectrum/example.toml").into(),
        }
    }
}

/// Prints an input with comments.
pub fn run(args: &InitArguments, context: &Context) -> Outcome {
    if let (InputCommand::Solve | InputCommand::Spectrum, Some(_)) = (args.kind, args.quarks) {
        let key = if matches!(args.kind, InputCommand::Spectrum) { "solve.operator" } else { "operator" };
        let why = format!(
            "--quarks applies to `ferrite init rhmc` only: remove --quarks, and set the key {key} in the input of {}",
            args.kind.name()
        );
        return Err(Failure::refused(why).shared());
    }
    let input = args.kind.input(args.quarks.unwrap_or(InputQuarks::Asqtad));
    let record = InitRecord { kind: args.kind.name().into(), input };
    context.output.document(&record, &record.input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::SOLVE;
    use ferrite_inputs::Input;
    use std::fs;

    /// All keys are there, with values of their types, but for those that stand for others.
    #[test]
    fn the_input_of_solve_is_complete() {
        let input = InputCommand::Solve.input(InputQuarks::Asqtad);
        let text: Vec<_> = input
            .lines()
            .map(|line| line.strip_prefix("# ").filter(|key| is_assignment(key)).unwrap_or(line))
            .collect();
        let file = std::env::temp_dir().join(format!("ferrite-init-{}.toml", std::process::id()));
        fs::write(&file, text.join("\n")).expect("a folder for temporary files");
        let mut settings = Input::new(&SOLVE);
        let read = settings.file(&file);
        let _ = fs::remove_file(&file);
        assert!(read.is_ok());
        for (key, _) in SOLVE.keys() {
            let others = ["kappa", "shifts", "clover-r", "clover-t"];
            assert!(settings.get(key).is_some() != others.contains(&key), "{key}");
        }
        let mistakes = settings.finish("").err().map(|mistakes| mistakes.0).unwrap_or_default();
        assert!(!mistakes.contains("unknown") && !mistakes.contains("expected"), "{mistakes}");
    }

    fn is_assignment(text: &str) -> bool {
        let key = text.split(" = ").next().unwrap_or_default();
        text.contains(" = ")
            && !key.is_empty()
            && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    }
}
