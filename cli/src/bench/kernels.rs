//! Commands `ferrite bench dslash`, `ferrite bench blas` and `ferrite bench copy`.
use crate::device::Device;
use crate::formats::FormatFlags;
use crate::keys::alternatives;
use crate::text::lattice;
use crate::{Context, Failure, Outcome};
use clap::Args;
use ferrite::backend::MAX_RHS_PER_LAUNCH;
use ferrite::bench::{self, BenchRow};
use ferrite::domain::Domain;
use ferrite::field::{DeviceGauge, FieldShape};
use ferrite::lattice::Lattice;
use ferrite::operators::fat_links;
use ferrite::operators::{Definition, OPERATORS, operator_named};
use ferrite::workload::Options;
use ferrite::{LinkStorage, Precision};
use ferrite_inputs::none_of;
use ferrite_records::bench::{BenchRecord, TimedCall};
use ferrite_records::place::PlaceRecord;
use std::fmt::Write;

const EXAMPLES: &str = "\
Examples:
  ferrite bench dslash --lattice 32,32,32,32
  ferrite bench dslash --precision single,half --reconstruct 12 --nrhs 4 --json
  ferrite bench dslash --operator clover --precision half
  ferrite bench dslash --operator asqtad --reconstruct 18,12,8,13,9
  ferrite bench dslash --precision single --reconstruct 12,12t

GFLOP/s count 1320 operations per site for the Wilson hopping term, 504 for the clover term, 570 for the naive staggered
hopping term and 1146 for asqtad's, without reconstruction. clover_dslash is A^-1 D psi, clover_matrix the symmetric
even-odd operator, staggered_matrix and asqtad_matrix M^+ M on one parity with the sum that CG needs. Asqtad's fat links
have 18 reals; its long links, which are a number times SU(3), have 18, 12 or 8. HISQ's long links, a number times U(3),
have 13 or 9, which are timed on such links. GB/s count every link and every spinor once, but not the links in t in
temporal gauge (12t, 8t), which are 1 and not read. With several processes, GFLOP/s are for all processes, GB/s for one.
The share of copy is GB/s over the bandwidth of a plain copy, measured in the same run.";

/// Kernels that a benchmark times.
#[derive(Clone, Debug, PartialEq)]
pub enum TimedKernels {
    /// Hopping terms and even-odd matrices of these operators.
    Dslash(Vec<&'static Definition>),
    /// Linear algebra of the solvers.
    Blas,
    /// Copy in device memory.
    Copy,
}

/// Returns the operators whose kernels can be timed and tuned. HISQ is left out because it has the kernels of asqtad.
fn all_operators() -> impl Iterator<Item = &'static Definition> {
    OPERATORS.into_iter().filter(|definition| definition.has_own_kernels)
}

/// Returns the names of the operators that can be timed: `wilson, clover, staggered or asqtad`.
pub fn names() -> String {
    alternatives(all_operators().map(|definition| definition.name))
}

/// Returns the values of `--operator`: the names of the operators that can be timed, and `all`.
pub fn timed_operators() -> Vec<String> {
    all_operators().map(|definition| definition.name).chain(["all"]).map(String::from).collect()
}

/// Returns the operator called `name`, or all operators for `all`.
pub fn operators(name: &str) -> Outcome<Vec<&'static Definition>> {
    if name == "all" {
        return Ok(all_operators().collect());
    }
    let found = all_operators().find(|definition| operator_named(name).is_some_and(|named| named == *definition));
    found.map(|definition| vec![definition]).ok_or_else(|| {
        let names: Vec<_> = all_operators().map(|definition| definition.name).chain(["all"]).collect();
        Failure::refused(format!("--operator {}", none_of("operator", name, &names)))
    })
}

/// Returns the operator called `name`. Fails for `all`.
pub fn operator(name: &str) -> Outcome<&'static Definition> {
    match operators(name)?[..] {
        [one] => Ok(one),
        _ => Err(Failure::refused(format!(
            "--operator all: this command measures a single operator; choose one of {}",
            names()
        ))),
    }
}

/// Arguments of `bench dslash`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Dslash {
    #[arg(long, value_name = "NAME", default_value = "wilson", help = format!("Operator: {}, or all", names()))]
    operator: String,
    #[command(flatten)]
    common: KernelFlags,
}

/// Arguments that `bench dslash`, `bench blas` and `bench copy` share.
#[derive(Args)]
pub struct KernelFlags {
    /// Extents of the whole lattice [default: 32,32,32,32 on a GPU, 16,16,16,16 on a CPU]
    #[arg(long, value_name = "X,Y,Z,T", value_parser = lattice)]
    pub lattice: Option<Lattice>,
    /// Precisions of the fields and storages of the links to time.
    #[command(flatten)]
    pub formats: FormatFlags,
    /// Number of right-hand sides in one call, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub nrhs: usize,
}

/// Message for requested formats in which no kernel exists.
pub const NO_SUCH_KERNELS: &str = "no kernel exists in the formats of --precision and --reconstruct: choose other \
                                   formats. Kernels of wilson and clover exist with --reconstruct 18, 12 and 12t in \
                                   double, single, half and fp16, and with 8 and 8t in double and single. Kernels of \
                                   twisted and twisted-clover exist with 18 and 12 in double, single and half. Kernels \
                                   of staggered, asqtad and hisq exist with 18, 12 and 8 in double, single and half, and \
                                   with 18h, 12h and 8h in single. Kernels of asqtad and hisq also exist with 13 and 9 in \
                                   double, single and half, and with 13h, 9h, 13f and 9f in single";

/// Returns whether the operator has a kernel in any pair of a precision from `precisions` and a storage from `reconstructions`.
pub fn exist(definition: &Definition, precisions: &[Precision], reconstructions: &[LinkStorage]) -> bool {
    precisions.iter().any(|&p| reconstructions.iter().any(|&r| definition.exists(p, r)))
}

/// Fails if there are more right-hand sides than a launch can process.
pub fn check_nrhs(nrhs: usize) -> Outcome {
    let most = MAX_RHS_PER_LAUNCH;
    if (1..=most).contains(&nrhs) {
        return Ok(());
    }
    Err(Failure::refused(format!("--nrhs {nrhs}: expected 1 to {most} right-hand sides")))
}

/// Returns the requested lattice, or the default for the device.
pub fn lattice_or_default(lattice: Option<Lattice>, device: &Device) -> Outcome<Lattice> {
    let extent = if device.name() == "cpu" { 16 } else { 32 };
    lattice.map_or_else(|| Lattice::new([extent; 4]).map_err(Failure::refused), Ok)
}

/// Returns the device memory that the timed operations need on a lattice, by name.
pub fn memory(lattice: Lattice, nrhs: usize, operators: &[&Definition]) -> Vec<(&'static str, usize)> {
    let sites = lattice.half_volume();
    let spinor = FieldShape::spinors(Precision::Double, nrhs).bytes(sites);
    let mut needs = vec![("fields", 8 * spinor + 384 * sites * nrhs)];
    if operators.is_empty() {
        return needs;
    }
    let links = 2 * DeviceGauge::bytes_for(Precision::Double, LinkStorage::FULL, sites);
    needs.push(("links", links + 1152 * sites));
    let term = |definition: &&Definition| (definition.sample)().diagonal_bytes(Precision::Double, sites);
    let largest = operators.iter().map(term).max().unwrap_or(0);
    if largest > 0 {
        // The diagonal term and its inverse are stored on both parities, in double precision and in the timed precision. They are computed
        // from links in double precision.
        needs.push(("links in double", links));
        needs.push(("diagonal term and its inverse", 2 * largest));
    }
    if operators.iter().any(|definition| definition.is_improved()) {
        // Improved operators need thin, fat and long links in double precision, the workspace for making them, and packed long links.
        needs.push(("links in double", 3 * 1152 * sites + fat_links::workspace_bytes(sites)));
        needs.push(("long links", links));
    }
    needs
}

/// Times the kernels of the requested operators.
pub fn dslash(args: Dslash, context: &Context) -> Outcome {
    let operators = context.comm.agree(operators(&args.operator))?;
    run(args.common, TimedKernels::Dslash(operators), context)
}

impl KernelFlags {
    /// Returns the requested precisions and link storages. Fails if no kernel exists in these formats.
    fn formats_of(&self, what: &TimedKernels) -> Outcome<(Vec<Precision>, Vec<LinkStorage>)> {
        let (precisions, reconstructions) = (self.formats.precisions()?, self.formats.reconstructions()?);
        check_nrhs(self.nrhs)?;
        if let TimedKernels::Dslash(operators) = what
            && !operators.iter().any(|definition| exist(definition, &precisions, &reconstructions))
        {
            return Err(Failure::refused(NO_SUCH_KERNELS));
        }
        Ok((precisions, reconstructions))
    }
}

/// Times the kernels, and prints a table.
pub fn run(args: KernelFlags, what: TimedKernels, context: &Context) -> Outcome {
    let comm = &context.comm;
    let (precisions, reconstructions) = comm.agree(args.formats_of(&what))?;
    let choice = context.device_choice()?;
    let device = choice.open(comm)?;
    let lattice = lattice_or_default(args.lattice, &device)?;
    let mut needs = vec![("buffers of the copy", if device.name() == "cpu" { 1 << 28 } else { 1 << 31 })];
    let operators = match &what {
        TimedKernels::Dslash(operators) => operators.clone(),
        TimedKernels::Blas | TimedKernels::Copy => Vec::new(),
    };
    let hops = operators.iter().map(|definition| definition.steps()).max().unwrap_or(1);
    let layout = choice.layout.cut(comm, lattice, hops)?;
    if what != TimedKernels::Copy {
        needs.extend(memory(layout.local(), args.nrhs, &operators));
    }
    device.require_all(comm, &needs, &format!("the benchmark on the local lattice {}", layout.local()))?;
    let options = Options { lattice, precisions, reconstructions, nrhs: args.nrhs };
    let rows = measure_all(&layout.domain(device.backend())?, &what, &options)?;
    let record = BenchRecord {
        place: PlaceRecord {
            backend: device.name().into(),
            device: device.describe(),
            layout: layout.record_with_transport(),
        },
        rows: rows.iter().map(row).collect(),
        launches: device.launches(),
    };
    context.output.record(&record, || table(&rows, lattice, &device.describe()))
}

fn row(row: &BenchRow) -> TimedCall {
    TimedCall {
        operator: row.operator.to_string(),
        precision: row.precision.to_string(),
        reconstruct: row.reconstruct.to_string(),
        lattice: row.lattice,
        nrhs: row.nrhs,
        microseconds: row.microseconds,
        gflops: row.gflops,
        gbps: row.gbps,
        fraction_of_copy: row.fraction_of_copy,
    }
}

fn measure_all(domain: &Domain, what: &TimedKernels, options: &Options) -> ferrite::domain::Result<Vec<BenchRow>> {
    let mut rows = Vec::new();
    match what {
        TimedKernels::Dslash(operators) => {
            for definition in operators {
                rows.extend(bench::operator(domain, definition, options)?);
            }
        }
        TimedKernels::Blas => {
            rows.extend(bench::blas(domain, options)?);
            rows.extend(bench::colour_blas(domain, options)?);
        }
        TimedKernels::Copy => rows.extend(bench::copy(domain)?),
    }
    Ok(rows)
}

fn table(rows: &[BenchRow], lattice: Lattice, device: &str) -> String {
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
