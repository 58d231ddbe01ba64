//! Command `ferrite generate`.
use super::fields::{file_precision, gauge_format, gauge_precision, help_of_output, require_host_memory, write_gauge};
use super::text::lattice;
use super::{Context, Failure, Outcome, quenched, target};
use clap::{Args, ValueEnum};
use ferrite::files::plaquette_of_part;
use ferrite::files::{FileFormat, FilePrecision, WriteOptions};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite_records::links::{GenerateRecord, GeneratedPlaquette};
use ferrite_tasks::quenched::QuenchedTarget;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite generate weak-field --lattice 16,16,16,32 --seed 7 -o weak.ildg
  ferrite generate random --lattice 8,8,8,8 --seed 1 --precision single -o random.nersc
  ferrite generate quenched --lattice 16,16,16,16 --beta 6.0 --sweeps 500 --seed 3 -o q.ildg
  ferrite generate quenched --lattice 16,16,16,16 --beta 6.0 --thermalise 500 --sweeps 1000 --every 100 --seed 3 -o q.ildg
  ferrite generate quenched --lattice 16,16,16,16 --beta 6.0 --start q.ildg --first-sweep 500 --sweeps 100 --seed 3 -o r.ildg

The same seed gives the same links on every machine, with any number of threads. A quenched run that is continued from
its last file with --first-sweep gives the results of an uninterrupted run if the file stores the links to the bit, as
.ildg does by default.";

/// Kinds of generated links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LinkKind {
    /// Unit links with noise, projected back to SU(3)
    WeakField,
    /// Links that are all 1
    Unit,
    /// Independent links, distributed with the Haar measure
    Random,
    /// SU(3) links with the Wilson plaquette action, by heat bath and over-relaxation on the device
    Quenched,
}

/// Arguments of `generate`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct GenerateArguments {
    /// Kind of links to generate
    #[arg(value_enum)]
    kind: LinkKind,
    /// Lattice extents, all even
    #[arg(long, value_name = "X,Y,Z,T", value_parser = lattice)]
    lattice: Lattice,
    /// Seed of the random numbers; required unless all links are 1
    #[arg(long, value_name = "N", required_if_eq_any = [
        ("kind", "weak-field"), ("kind", "random"), ("kind", "quenched"),
    ])]
    seed: Option<u64>,
    /// Amplitude of the noise of a weak field [default: 0.1]
    #[arg(long, value_name = "SIGMA", value_parser = noise, allow_hyphen_values = true)]
    noise: Option<f64>,
    /// Precision of the numbers in the file: single or double [default: double; single for .milc]
    #[arg(long, value_name = "NAME", value_parser = file_precision)]
    precision: Option<FilePrecision>,
    #[arg(short, long, value_name = "FILE", help = help_of_output("Output file; its name determines the format"))]
    output: PathBuf,
    #[command(flatten)]
    quenched: quenched::QuenchedFlags,
}

fn noise(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() && (0.0..=1e6).contains(&x) => Ok(x),
        _ => Err(format!("'{text}' is not a number from 0 to 1e6")),
    }
}

impl GenerateArguments {
    /// Returns the format and the precision of the output file, from flags and its name.
    fn check(&self) -> Outcome<(&'static FileFormat, FilePrecision)> {
        if self.noise.is_some() && self.kind != LinkKind::WeakField {
            return Err(Failure::refused("--noise applies to `ferrite generate weak-field` only: remove --noise"));
        }
        let format = gauge_format(&self.output).map_err(Failure::refused)?;
        if self.kind != LinkKind::Quenched {
            self.quenched.refuse()?;
        }
        let precision = gauge_precision(self.precision, FilePrecision::Double, format).map_err(Failure::refused)?;
        Ok((format, precision))
    }
}

/// Generates links and writes them.
pub fn run(args: GenerateArguments, context: &Context) -> Outcome {
    let (choice, comm) = (context.device_choice()?, &context.comm);
    choice.start_threads(comm)?;
    let (format, precision) = comm.agree(args.check())?;
    let start = args.quenched.start();
    target::claim(comm, start.file().as_slice(), &[&args.output])?;
    let (lattice, seed, noise) = (args.lattice, args.seed.unwrap_or(0), args.noise.unwrap_or(0.1));
    let layout = choice.layout.cut(comm, lattice, 1)?;
    let (section, local) = (layout.section, layout.local());
    require_host_memory(comm, local, 576, &args.output.display().to_string())?;
    let (gauge, title) = match args.kind {
        LinkKind::Unit => (ferrite::field::host::HostGauge::unit(local), "unit links".into()),
        LinkKind::Random => (generate::random(section, seed), format!("random links, seed {seed}")),
        LinkKind::WeakField => {
            (generate::weak_field(section, seed, noise), format!("weak field, seed {seed}, noise {noise}"))
        }
        LinkKind::Quenched => {
            let run = args.quenched.run(seed, QuenchedTarget { path: args.output, format, precision });
            let record = run.make(&layout, &choice, &context.session)?;
            let sweeps = record.quenched.as_ref();
            return context
                .output
                .record(&record, || sweeps.map_or_else(String::new, |sweeps| quenched::table(&record, sweeps)));
        }
    };
    let options = WriteOptions { format, precision, title, ..Default::default() };
    write_gauge(&args.output, &gauge, &options, &layout)?;
    let plaquette = plaquette_of_part(&gauge, &section, layout.network()).map_err(Failure::failed)?.mean;
    let record = GenerateRecord {
        output: args.output.clone(),
        lattice: lattice.size(),
        seed: args.seed,
        layout: layout.record(),
        plaquette: GeneratedPlaquette { mean: plaquette, average: None, error: None, autocorrelation: None },
        files: None,
        seconds: None,
        backend: None,
        device: None,
        quenched: None,
    };
    context.output.record(&record, || {
        format!("{}: {} on {lattice}, plaquette {plaquette:.10}\n", args.output.display(), options.title)
    })
}
