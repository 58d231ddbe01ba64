//! `ferrite bench dslash`, `blas` and `copy`.
use crate::cli::device::{Device, on_device};
use crate::cli::formats::FormatFlags;
use crate::cli::text::lattice;
use crate::cli::{Context, Failure, Outcome};
use clap::Args;
use ferrite::backend::{Cpu, MAX_RHS};
use ferrite::bench::{self, Options, Row};
use ferrite::field::{DeviceClover, DeviceGauge, DeviceSpinor};
use ferrite::lattice::Lattice;
use gpu_kernels::storage::{Double, Recon18};
use serde_json::json;
use std::fmt::Write;

const EXAMPLES: &str = "\
Examples:
  ferrite bench dslash --lattice 32,32,32,32
  ferrite bench dslash --precision single,half --reconstruct 12 --nrhs 4 --json
  ferrite bench dslash --operator clover --precision half
  ferrite bench dslash --precision single --reconstruct 12,12t

GFLOP/s count 1320 operations per site of the Wilson hopping term and 504 of the clover term, reconstruction not
counted. clover_dslash is A^-1 D psi, clover_matrix the symmetric even-odd operator. GB/s count every link and
every spinor once; in temporal gauge (12t, 8t) the links in t, which are 1 and not read, do not count. The share of copy
is GB/s over the bandwidth of a plain copy, measured in the same run.";

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Hopping terms of the operators.
    Dslash {
        /// Wilson.
        wilson: bool,
        /// Wilson-clover.
        clover: bool,
    },
    /// Linear algebra.
    Blas,
    /// A copy.
    Copy,
}

/// Arguments of `bench dslash`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Dslash {
    /// wilson, clover or all
    #[arg(long, value_name = "NAME", default_value = "wilson")]
    operator: String,
    #[command(flatten)]
    common: Common,
}

/// Arguments of all three.
#[derive(Args)]
pub struct Common {
    /// Extents [default: 32,32,32,32 on a GPU, 16,16,16,16 on a CPU]
    #[arg(long, value_name = "X,Y,Z,T", value_parser = lattice)]
    lattice: Option<Lattice>,
    #[command(flatten)]
    formats: FormatFlags,
    /// Right-hand sides in one call
    #[arg(long, value_name = "N", default_value_t = 1)]
    nrhs: usize,
}

/// Refuses more right-hand sides than kernels can sum for at once.
pub fn check_nrhs(nrhs: usize) -> Outcome {
    let most = MAX_RHS;
    if (1..=most).contains(&nrhs) {
        return Ok(());
    }
    Err(Failure::refused(format!("--nrhs {nrhs}: between 1 and {most} right-hand sides")))
}

/// The lattice asked for, or one that fills the device.
pub fn lattice_or_default(lattice: Option<Lattice>, device: &Device) -> Outcome<Lattice> {
    let extent = if device.name() == "cpu" { 16 } else { 32 };
    lattice.map_or_else(|| Lattice::new([extent; 4]).map_err(Failure::refused), Ok)
}

/// Bytes that the operations on a lattice need.
pub fn memory(lattice: Lattice, nrhs: usize, links: bool, clover: bool) -> Vec<(&'static str, usize)> {
    let sites = lattice.half_volume();
    let spinor = DeviceSpinor::<Cpu, Double>::bytes_for(sites, nrhs);
    let mut needs = vec![("fields", 8 * spinor + 384 * sites * nrhs)];
    if links {
        let links = 2 * DeviceGauge::<Cpu, Double, Recon18>::bytes_for(sites);
        needs.push(("links", links + 1152 * sites));
        if clover {
            // The term and its inverse on both parities, in double and in the precision that is timed.
            let term = 8 * DeviceClover::<Cpu, Double>::bytes_for(sites);
            needs.push(("links in double", links));
            needs.push(("clover term and its inverse", term));
        }
    }
    needs
}

/// Times the operators asked for.
pub fn dslash(args: Dslash, context: &Context) -> Outcome {
    let (wilson, clover) = match args.operator.as_str() {
        "wilson" => (true, false),
        "clover" => (false, true),
        "all" => (true, true),
        other => return Err(Failure::refused(format!("--operator '{other}' is none of wilson, clover, all"))),
    };
    run(args.common, What::Dslash { wilson, clover }, context)
}

/// Times and prints a table.
pub fn run(args: Common, what: What, context: &Context) -> Outcome {
    let (precisions, reconstructions) = (args.formats.precisions()?, args.formats.reconstructions()?);
    if what != What::Blas && !precisions.iter().any(|&p| reconstructions.iter().any(|r| r.exists_in(p))) {
        return Err(Failure::refused("--reconstruct 8t is there in double and single precision only"));
    }
    check_nrhs(args.nrhs)?;
    let device = context.device_choice()?.open()?;
    let lattice = lattice_or_default(args.lattice, &device)?;
    let mut needs = vec![("buffers of the copy", if device.name() == "cpu" { 1 << 28 } else { 1 << 31 })];
    if what != What::Copy {
        let clover = matches!(what, What::Dslash { clover: true, .. });
        needs.extend(memory(lattice, args.nrhs, what != What::Blas, clover));
    }
    device.require(&needs, &format!("the benchmark on {lattice}"))?;
    let options = Options { lattice, precisions, reconstructions, nrhs: args.nrhs };
    let rows = on_device!(&device, backend => match what {
        What::Dslash { wilson, clover } => {
            let mut rows = if wilson { bench::dslash(backend, &options)? } else { Vec::new() };
            if clover {
                rows.extend(bench::clover(backend, &options)?);
            }
            Ok(rows)
        }
        What::Blas => bench::blas(backend, &options),
        What::Copy => bench::copy(backend),
    })?;
    let object = json!({
        "backend": device.name(),
        "device": device.describe(),
        "rows": rows.iter().map(|row| json!({
            "operator": row.operator,
            "precision": row.precision,
            "reconstruct": row.reconstruct,
            "lattice": row.lattice,
            "nrhs": row.nrhs,
            "microseconds": row.microseconds,
            "gflops": row.gflops,
            "gbps": row.gbps,
            "fraction_of_copy": row.fraction_of_copy,
        })).collect::<Vec<_>>(),
        "launches": device.launches(),
    });
    context.output.result("ferrite.bench/1", object, || table(&rows, lattice, &device.describe()))
}

fn table(rows: &[Row], lattice: Lattice, device: &str) -> String {
    let on = if rows.iter().all(|row| row.operator == "copy") { String::new() } else { format!(", {lattice}") };
    let mut text = format!("{device}{on}\n");
    let _ = writeln!(
        text,
        "{:<20} {:<9} {:>5} {:>4} {:>12} {:>10} {:>9} {:>8}",
        "operator", "precision", "recon", "nrhs", "us", "GFLOP/s", "GB/s", "of copy"
    );
    for r in rows {
        let _ = writeln!(
            text,
            "{:<20} {:<9} {:>5} {:>4} {:>12.2} {:>10.1} {:>9.1} {:>7.1}%",
            r.operator,
            r.precision,
            r.reconstruct,
            r.nrhs,
            r.microseconds,
            r.gflops,
            r.gbps,
            100.0 * r.fraction_of_copy
        );
    }
    text
}
