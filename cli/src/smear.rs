//! Command `ferrite smear`.
use super::fields::help_of_output;
use super::stout;
use super::verify::ReadFlags;
use super::{Context, Failure, Outcome, text};
use clap::{Args, ValueEnum};
use ferrite::gauge::ape_hyp::{ProjectedSmearing, Projection, SumsOfStaples};
use ferrite::gauge::measure::Plaquettes;
use ferrite::hmc::stout::{MOST_SMEARING_LEVELS, StoutSmearing};
use ferrite::observables::loops::plaquette_text;
use ferrite_records::observables::PlaquetteMeans;
use ferrite_tasks::link_job::LinkFilesRequest;
use ferrite_tasks::link_smearing::LinkSmearing;
use ferrite_tasks::smear::SmearRequest;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite smear cfg.000100.ildg -o stout.ildg --rho 0.1 --levels 2
  ferrite smear cfg.000100.ildg -o stout.ildg --rho 0.14 --spatial
  ferrite smear cfg.000100.ildg -o ape.ildg --kind ape --alpha 0.6 --levels 20 --spatial
  ferrite smear cfg.000100.ildg -o hyp.ildg --kind hyp

stout: U' = exp(iQ) U, where iQ is rho times the traceless anti-Hermitian part of the sum of staples times U+ (Morningstar and Peardon
2004). `ferrite solve --stout-rho` smears in the same way without a file. ape: the projection of (1 - alpha) U + alpha times the mean of
the staples. hyp: three such sums, of staples within the hypercubes next to the link (Hasenfratz and Knechtli 2001). The projection to
SU(3) maximises Re tr.";

/// Arguments of `smear`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct SmearArguments {
    /// Gauge configuration, in any supported format
    input: PathBuf,
    #[arg(short, long, value_name = "FILE", help = help_of_output("The file to write"))]
    output: PathBuf,
    /// Smearing method
    #[arg(long, value_name = "NAME", value_enum, default_value = "stout")]
    kind: SmearingKindName,
    /// Weight rho of a staple for stout smearing, 0 to 0.25
    #[arg(long, value_name = "RHO", value_parser = stout::rho, allow_hyphen_values = true)]
    rho: Option<f64>,
    /// Weights of the staples: one for ape; three for hyp, the outermost sum first [default for hyp: 0.75,0.6,0.3]
    #[arg(long, value_name = "A", value_parser = share, value_delimiter = ',', allow_hyphen_values = true)]
    alpha: Vec<f64>,
    /// Number of smearing steps
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST_SMEARING_LEVELS)), default_value = "1",
          allow_hyphen_values = true)]
    levels: u16,
    /// Smear only links in x, y and z, with staples in these directions
    #[arg(long)]
    spatial: bool,
    #[command(flatten)]
    read: ReadFlags,
}

/// `--kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SmearingKindName {
    /// Stout smearing: exp(iQ) U
    Stout,
    /// APE smearing: projected sum of link and staples
    Ape,
    /// HYP smearing: projected sums of link and staples, three times, within hypercubes
    Hyp,
}

fn share(text: &str) -> std::result::Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(x) if (0.0..=1.0).contains(&x) => Ok(x),
        _ => Err(format!("'{text}' is not a number from 0 to 1")),
    }
}

/// Returns the smearing that the flags describe.
fn smearing(args: &SmearArguments) -> Outcome<LinkSmearing> {
    let (levels, spatial) = (usize::from(args.levels), args.spatial);
    let projected = |sums| {
        Ok(LinkSmearing::Projected(ProjectedSmearing { sums, levels, spatial, projection: Projection::default() }))
    };
    let refused = |why: &str| Err(Failure::refused(why));
    match (args.kind, args.rho, args.alpha.as_slice()) {
        (SmearingKindName::Stout, Some(rho), []) => Ok(LinkSmearing::Stout(StoutSmearing { rho, levels, spatial })),
        (SmearingKindName::Stout, None, []) => refused("no weight: stout smearing needs --rho RHO"),
        (SmearingKindName::Stout, _, _) => {
            refused("--alpha applies to --kind ape and --kind hyp only: give one of these, or --rho instead of --alpha")
        }
        (_, Some(_), _) => {
            refused("--rho applies to --kind stout only: give --kind stout, or --alpha instead of --rho")
        }
        (SmearingKindName::Ape, None, &[alpha]) => projected(SumsOfStaples::Ape(alpha)),
        (SmearingKindName::Ape, None, []) => refused("no weight: --kind ape needs --alpha A, such as 0.6"),
        (SmearingKindName::Ape, None, _) => refused(&format!(
            "--alpha {}: APE smearing takes a single weight of the staples: give one number",
            crate::text::numbers(&args.alpha)
        )),
        (SmearingKindName::Hyp, None, []) => projected(SumsOfStaples::USUAL_HYP),
        (SmearingKindName::Hyp, None, &[first, second, third]) => projected(SumsOfStaples::Hyp([first, second, third])),
        (SmearingKindName::Hyp, None, _) => refused(&format!(
            "--alpha {}: HYP smearing takes three weights of the staples: give --alpha A1,A2,A3",
            crate::text::numbers(&args.alpha)
        )),
    }
}

/// Smears the links of a configuration, writes them, and prints the record.
pub fn run(args: SmearArguments, context: &Context) -> Outcome {
    let smearing = context.comm.agree(smearing(&args))?;
    let device = context.device_choice()?;
    let files = LinkFilesRequest { input: args.input, output: args.output, reading: args.read.reading(), device };
    let record = SmearRequest { files, smearing }.smear(&context.session)?;
    context.output.record(&record, || {
        let PlaquetteMeans { mean, spatial, temporal } = record.loops.after.plaquette;
        let (output, title) = (record.links.output.display(), smearing.title());
        let (levels, lattice) = (text::count(record.levels, "level"), text::by(record.links.lattice));
        let plaquettes = plaquette_text(&Plaquettes { mean, spatial, temporal });
        format!("{output}: {title}, {levels}, on {lattice}\n{plaquettes}")
    })
}
