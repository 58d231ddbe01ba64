//! Command `ferrite trace`.
use super::keys::SolverFlags;
use super::{Context, Failure, Outcome, text};
use clap::{Args, ValueEnum};
use ferrite::observables::traces::{Dilution, MOST_NOISE, NoiseKind};
use ferrite_records::measure::TraceLine;
use ferrite_tasks::trace::{TraceNoise, TraceRequest};
use std::fmt::Write as _;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite trace run/cfg.*.ildg --operator hisq --masses 0.01,0.05 --noise 16 --seed 7 -o condensate.jsonl
  ferrite trace cfg.000100.ildg --operator clover --csw 1.2 --mass 0.05 --noise 4 --dilute spin,colour
  ferrite trace cfg.000100.ildg --kappa 0.13 --noise 8 --dilute time:4 --solver multigrid -o loops.jsonl

Prints means over noise vectors, with errors: for Wilson-like operators tr Gamma M^-1 / V with all 16 products of gamma matrices;
for staggered operators the condensate tr M^-1 / V, with M = m + D/2 and all four flavours of the field. The noise depends on the
seed and on the name of the configuration, not on the process grid. With -o, each configuration adds a line of JSON with the
result of each noise vector; run the same command again to resume. From this file, `ferrite fit` computes means over
configurations and the disconnected susceptibility.";

/// Arguments of `trace`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct TraceArguments {
    /// Gauge configurations, in any supported format
    #[arg(required = true, value_name = "CONFIGURATION")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    flags: SolverFlags,
    /// Number of noise vectors on each configuration [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_NOISE)), allow_hyphen_values = true)]
    noise: Option<u32>,
    /// Seed of the noise [default: 1]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    seed: Option<u64>,
    /// Noise type [default: z4]
    #[arg(long, value_name = "NAME", value_enum)]
    kind: Option<NoiseKindName>,
    /// Dilution of the noise: time, time:N (times that differ by a multiple of N together), spin, colour or parity; several are
    /// separated by commas [default: no dilution]
    #[arg(long, value_name = "NAMES", value_parser = part, value_delimiter = ',')]
    dilute: Vec<DilutionPart>,
    /// Append a line of JSON to this file for each measured configuration; configurations that already have a line are skipped
    #[arg(short, long, value_name = "FILE.jsonl")]
    output: Option<PathBuf>,
}

/// `--kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NoiseKindName {
    /// 1 or -1
    Z2,
    /// (±1 ± i)/√2
    Z4,
}

/// One of `--dilute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DilutionPart {
    Time(usize),
    Spin,
    Colour,
    Parity,
}

fn part(text: &str) -> Result<DilutionPart, String> {
    match text.trim() {
        "time" => Ok(DilutionPart::Time(usize::MAX)),
        "spin" => Ok(DilutionPart::Spin),
        "colour" => Ok(DilutionPart::Colour),
        "parity" => Ok(DilutionPart::Parity),
        other => {
            let times = other.strip_prefix("time:").and_then(|n| n.parse().ok()).filter(|n| (2..=4096).contains(n));
            times.map(DilutionPart::Time).ok_or_else(|| {
                format!("'{other}' is none of time, time:N with N from 2 to 4096, spin, colour and parity")
            })
        }
    }
}

/// Returns the noise that the flags describe.
fn noise(args: &TraceArguments) -> Outcome<TraceNoise> {
    let mut dilution = Dilution::default();
    for (k, one) in args.dilute.iter().enumerate() {
        let same = |other: &DilutionPart| std::mem::discriminant(one) == std::mem::discriminant(other);
        if args.dilute[..k].iter().any(same) {
            let name = match one {
                DilutionPart::Time(_) => "time",
                DilutionPart::Spin => "spin",
                DilutionPart::Colour => "colour",
                DilutionPart::Parity => "parity",
            };
            return Err(Failure::refused(format!("--dilute: {name} occurs twice; remove one of the two")));
        }
        match one {
            DilutionPart::Time(times) => dilution.times = *times,
            DilutionPart::Spin => dilution.spin = true,
            DilutionPart::Colour => dilution.colour = true,
            DilutionPart::Parity => dilution.parity = true,
        }
    }
    let kind = match args.kind.unwrap_or(NoiseKindName::Z4) {
        NoiseKindName::Z2 => NoiseKind::Z2,
        NoiseKindName::Z4 => NoiseKind::Z4,
    };
    Ok(TraceNoise { vectors: args.noise.unwrap_or(8), seed: args.seed.unwrap_or(1), kind, dilution })
}

/// Measures the traces on all configurations, and prints the results.
pub fn run(args: TraceArguments, context: &Context) -> Outcome {
    let noise = context.comm.agree(noise(&args))?;
    let TraceArguments { files, flags, output, .. } = args;
    let request = TraceRequest::read(&files, noise, output, &context.session, |input| {
        context.add_to(input);
        flags.add_to(input);
    })?;
    let (record, ended) = request.measure(&context.session, |line, headline| {
        let (file, vectors) = (line.file.display(), text::count(noise.vectors as usize, "noise vector"));
        context.output.part(&format!("{file}: tr Gamma M^-1 / V of the {headline}, {vectors}\n{}", table(line)))
    })?;
    context.output.record(&record, String::new).and(ended)
}

/// Returns the traces on a configuration as text for people.
fn table(line: &TraceLine) -> String {
    let mut all =
        format!("{:<9} {:<7} {:>14} {:>9} {:>14} {:>9}\n", "mass", "Gamma", "real part", "error", "imaginary", "error");
    for trace in &line.traces {
        let ([re, im], [of_re, of_im]) = (trace.mean, trace.error);
        let error = |x: f64| if x.is_finite() { format!("{x:.1e}") } else { "–".into() };
        let (mass, gamma) = (text::rounded(trace.mass, 5), &trace.gamma);
        let _ = writeln!(all, "{mass:<9} {gamma:<7} {re:>+14.8} {:>9} {im:>+14.8} {:>9}", error(of_re), error(of_im));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read() {
        assert_eq!(
            [part("time"), part("time:4"), part("spin")],
            [Ok(DilutionPart::Time(usize::MAX)), Ok(DilutionPart::Time(4)), Ok(DilutionPart::Spin)]
        );
        for wrong in ["", "time:", "time:1", "time:x", "color"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }
}
