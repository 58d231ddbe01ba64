//! `ferrite init`: inputs with comments.
use super::{Context, Outcome, keys};
use clap::{Args, ValueEnum};
use serde_json::json;

const EXAMPLES: &str = "\
Examples:
  ferrite init solve > solve.toml
  ferrite init rhmc > run.toml
  ferrite check run.toml";

/// Arguments of `init`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct InitArguments {
    /// For which command
    kind: InputKind,
}

/// Commands that read an input.
#[derive(Clone, Copy, ValueEnum)]
enum InputKind {
    Solve,
    #[value(alias = "hmc")]
    Rhmc,
    Spectrum,
}

impl InputKind {
    fn name(self) -> &'static str {
        match self {
            InputKind::Solve => "solve",
            InputKind::Rhmc => "rhmc",
            InputKind::Spectrum => "spectrum",
        }
    }
    fn input(self) -> String {
        match self {
            InputKind::Solve => keys::input(),
            InputKind::Rhmc => include_str!("rhmc/example.toml").into(),
            InputKind::Spectrum => include_str!("spectrum/example.toml").into(),
        }
    }
}

/// Prints an input with comments.
pub fn run(args: &InitArguments, context: &Context) -> Outcome {
    let text = args.kind.input();
    context.output.document("ferrite.init/1", json!({ "kind": args.kind.name(), "input": text }), &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::config::{GLOBAL, Settings};
    use crate::cli::keys::SOLVE;
    use std::fs;

    /// All keys are there, with values of their types, but for those that stand for others.
    #[test]
    fn the_input_of_solve_is_complete() {
        let input = InputKind::Solve.input();
        let text: Vec<_> = input
            .lines()
            .map(|line| line.strip_prefix("# ").filter(|key| is_assignment(key)).unwrap_or(line))
            .collect();
        let file = std::env::temp_dir().join(format!("ferrite-init-{}.toml", std::process::id()));
        fs::write(&file, text.join("\n")).expect("a folder for temporary files");
        let mut settings = Settings::default();
        let read = settings.file(&file);
        let _ = fs::remove_file(&file);
        assert!(read.is_ok());
        for (key, _) in SOLVE.iter().chain(GLOBAL) {
            let others = ["kappa", "shifts", "clover-r", "clover-t"];
            assert!(settings.get(key).is_some() != others.contains(key), "{key}");
        }
        let mistakes = settings.finish("").err().map(|failure| failure.message).unwrap_or_default();
        assert!(!mistakes.contains("unknown") && !mistakes.contains("expected"), "{mistakes}");
    }

    fn is_assignment(text: &str) -> bool {
        let key = text.split(" = ").next().unwrap_or_default();
        text.contains(" = ")
            && !key.is_empty()
            && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    }
}
