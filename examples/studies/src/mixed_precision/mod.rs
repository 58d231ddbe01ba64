//! Command `ferrite-studies mixed-precision`.
mod tables;

use crate::{Context, Outcome};
use clap::Args;
use ferrite::operators::WILSON;
use ferrite::solve::Configuration;
use ferrite_cli::bench::solver::StudyFlags;
use ferrite_cli::bench::solver::table::{picture, print};
use serde_json::Map;
use tables::{Tables, is_shown, title};

const EXAMPLES: &str = "\
Examples:
  ferrite-studies mixed-precision --plot time-to-solution.svg
  ferrite-studies mixed-precision --table 5 --gauge quenched.ildg --masses=-0.76,-0.79 --sources 2
  ferrite-studies mixed-precision --lattice 8,8,8,16 --sweeps 50 --sources 1 --backend cpu

Generates a quenched configuration (or reads one) and solves the even-odd Wilson system on it for random sources,
antiperiodic in time. Iterations include updates; the time of an iteration is the time of a whole solve, updates included,
divided by the other iterations. A star marks a mass at which a solve did not converge: there is no escalation here. The
plot shows the time to solution and, dashed, the speed-up over double precision.
The tables are those of Clark et al., arXiv:0911.3191: 3, iterations in double precision; 4, BiCGstab with defect
correction for several inner tolerances; 5, with reliable updates for several delta; the plot is figure 7.";

/// Arguments of `ferrite-studies mixed-precision`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct MixedPrecisionArguments {
    /// Numbers of the tables of Clark et al. (arXiv:0911.3191) to repeat, separated by commas [default: 3,4,5]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    table: Option<Vec<u32>>,
    /// Bare masses, separated by commas [default: nine masses from -0.785 to -0.812]
    #[arg(long, value_name = "M", value_delimiter = ',', allow_hyphen_values = true)]
    masses: Option<Vec<f64>>,
    #[command(flatten)]
    study: StudyFlags,
}

/// Solves for all masses in the schemes of the requested tables, and prints the averages.
pub fn run(args: &MixedPrecisionArguments, context: &Context) -> Outcome {
    let checked = || {
        let tables = Tables::new(args)?;
        let masses = Tables::masses(args)?;
        Ok((tables, args.study.study(masses)?))
    };
    let (tables, study) = context.comm.agree(checked())?;
    let solved = args.study.on_links(
        1,
        |cut| tables.memory(cut),
        context,
        |domain, gauge, _| tables.work(&Configuration::new(domain, gauge), &study, context),
    )?;
    let results = &solved.work;
    args.study.draw(context, || {
        picture(
            results,
            format!("BiCGstab with reliable updates for Wilson fermions on {}", solved.lattice()),
            is_shown,
        )
    })?;
    let record = args.study.record(&solved, (WILSON.name, Some("001")), &study, results, Map::new());
    context.output.record(&record, || {
        let mut text = solved.title();
        for (number, _) in &tables.0 {
            text += &print(&title(*number), &results.table(Some(*number)), &study, &results.rates);
        }
        text
    })
}
