//! Wilson loops of `ferrite measure`.
use super::super::text::{numbers, rounded};
use super::super::{Failure, Outcome};
use clap::{Args, ValueEnum};
use ferrite::gauge::ape_hyp::{ProjectedSmearing, Projection, SumsOfStaples};
use ferrite::observables::quantity::WILSON_LOOPS;
use ferrite_records::observables::WilsonLoopsRecord;
use ferrite_tasks::measure::LoopRequest;
use std::fmt::Write as _;

/// Flags of Wilson loops, as typed.
#[derive(Args)]
pub struct LoopFlags {
    /// Measure Wilson loops up to distance R along each spatial axis and up to time T
    #[arg(long, value_name = "R,T", value_parser = sizes, allow_hyphen_values = true)]
    loops: Option<[usize; 2]>,
    /// Also measure off-axis loops: multiples of (1,1,0), (1,1,1), (2,1,0), (2,1,1) and (2,2,1) with |R| up to the distance of
    /// --loops
    #[arg(long)]
    off_axis: bool,
    /// Smearing method for the spatial links of the loops, with spatial staples only [default: no smearing]
    #[arg(long, value_name = "NAME", value_enum)]
    loop_smear: Option<LoopSmear>,
    /// Weights of the staples: one for ape; three for hyp, the outermost sum first and the third without effect [default for hyp:
    /// 0.75,0.6,0.3]
    #[arg(long, value_name = "A", value_parser = share, value_delimiter = ',', allow_hyphen_values = true)]
    loop_alpha: Vec<f64>,
    /// Number of smearing steps for the links of the loops [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000), allow_hyphen_values = true)]
    loop_levels: Option<u16>,
}

/// `--loop-smear`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LoopSmear {
    /// APE smearing: projected sum of link and staples
    Ape,
    /// HYP smearing: projected sums of link and staples, twice, within cubes
    Hyp,
}

fn sizes(text: &str) -> Result<[usize; 2], String> {
    let found: Option<Vec<usize>> = text.split(',').map(|n| n.trim().parse().ok()).collect();
    let two = found.and_then(|found| <[usize; 2]>::try_from(found).ok());
    two.filter(|two| two.iter().all(|n| *n > 0))
        .ok_or_else(|| format!("'{text}' is not of the form R,T with whole numbers above 0, such as 8,6"))
}

fn share(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(x) if (0.0..=1.0).contains(&x) => Ok(x),
        _ => Err(format!("'{text}' is not a number from 0 to 1")),
    }
}

impl LoopFlags {
    /// Returns the requested Wilson loops; `None` without `--loops`. Fails if flags that need `--loops` are given without it.
    pub fn request(&self) -> Outcome<Option<LoopRequest>> {
        let refused = |why: &str| Err(Failure::refused(why));
        let Some([distance, time]) = self.loops else {
            let given = [
                ("--off-axis", self.off_axis),
                ("--loop-smear", self.loop_smear.is_some()),
                ("--loop-alpha", !self.loop_alpha.is_empty()),
                ("--loop-levels", self.loop_levels.is_some()),
            ];
            return match given.iter().find(|(_, given)| *given) {
                Some((flag, _)) => refused(&format!("{flag} needs --loops: also give --loops R,T")),
                None => Ok(None),
            };
        };
        let sums = match (self.loop_smear, self.loop_alpha.as_slice()) {
            (None, []) if self.loop_levels.is_none() => None,
            (None, _) => {
                return refused(
                    "--loop-alpha and --loop-levels need --loop-smear: also give --loop-smear ape or --loop-smear hyp",
                );
            }
            (Some(LoopSmear::Ape), &[alpha]) => Some(SumsOfStaples::Ape(alpha)),
            (Some(LoopSmear::Ape), []) => {
                return refused("no weight: --loop-smear ape needs --loop-alpha A, such as 0.6");
            }
            (Some(LoopSmear::Ape), _) => {
                return refused(&format!(
                    "--loop-alpha {}: APE smearing takes a single weight of the staples: give one number",
                    numbers(&self.loop_alpha)
                ));
            }
            (Some(LoopSmear::Hyp), []) => Some(SumsOfStaples::USUAL_HYP),
            (Some(LoopSmear::Hyp), &[first, second, third]) => Some(SumsOfStaples::Hyp([first, second, third])),
            (Some(LoopSmear::Hyp), _) => {
                return refused(&format!(
                    "--loop-alpha {}: HYP smearing takes three weights of the staples: give --loop-alpha A1,A2,A3",
                    numbers(&self.loop_alpha)
                ));
            }
        };
        let levels = usize::from(self.loop_levels.unwrap_or(1));
        let smearing =
            sums.map(|sums| ProjectedSmearing { sums, levels, spatial: true, projection: Projection::default() });
        Ok(Some(LoopRequest { distance, time, off_axis: self.off_axis, smearing }))
    }
}

/// Returns W(R, T) as text, with a line for each R.
pub fn text(all: &[WilsonLoopsRecord]) -> String {
    let times = all.first().map_or(0, |one| one.values.len());
    let mut text = WILSON_LOOPS.line("W(R, T)");
    let _ = write!(text, "{:>10}", "R");
    for t in 1..=times {
        let _ = write!(text, " {:>12}", format!("T = {t}"));
    }
    text += "\n";
    for one in all {
        let _ = write!(text, "{:>10}", one.r.map(|x| x.to_string()).join(","));
        for w in &one.values {
            let _ = write!(text, " {:>12}", rounded(*w, 9));
        }
        text += "\n";
    }
    text
}
