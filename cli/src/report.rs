//! Command `ferrite report`.
use super::{Context, Failure, Outcome, provenance, target};
use clap::Args;
use ferrite_report::ReportError;
use ferrite_report::page::collection::CollectionReport;
use ferrite_report::page::folder_name;
use ferrite_report::page::rhmc::RhmcReport;
use ferrite_report::page::spectrum::SpectrumReport;
use ferrite_report::records::correlators::{self, CorrelatorRecord};
use ferrite_report::records::trajectories;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  ferrite report run
  ferrite report run --skip 200 -o thermal.html
  ferrite report run --json
  ferrite report spectrum                            # folder of ferrite spectrum --out spectrum: correlators, masses
  ferrite report flow.jsonl                          # file of ferrite measure --flow 4 -o flow.jsonl: flow, t0, w0
  ferrite report condensate.jsonl                    # file of ferrite trace -o condensate.jsonl: condensates, susceptibilities
  ferrite report fit.json                            # output of ferrite fit > fit.json: correlators with their fits
  ferrite report solve.json                          # output of ferrite solve > solve.json: convergence
  ferrite report slurm-1234.out                      # log of a job: its solves and benchmarks
  ferrite report one.json two.json -o scaling.html   # output of bench dslash --json with 1 and 2 processes: scaling
  ferrite report run solve.json trace.json           # file of bench halo --trace trace.json: timeline

The run may still be in progress. The page is a single file. For a run it shows histories with running averages, ΔH with its
histogram, exp(−ΔH), means with errors and autocorrelation times, iterations and seconds.";

/// Arguments of `report`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArguments {
    /// Folders of `ferrite rhmc` and `ferrite spectrum`; files of `ferrite measure -o` and `ferrite trace -o`; output of `solve`,
    /// `fit`, `bench dslash` and `ferrite-studies model` with --json, also within a log; points for `ferrite-studies model
    /// --measured`; timelines of `bench halo --trace`
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// HTML page to write [default: report.html, in the folder if PATH is one folder, else in the working directory]
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
    /// Number of trajectories to skip at the beginning of each run [default: those without a Metropolis step]
    #[arg(long, value_name = "N")]
    skip: Option<usize>,
}

/// Returns the paths, and for folders also the files in them, which may be read.
fn files(paths: &[PathBuf]) -> Vec<PathBuf> {
    let in_folder = |path: &PathBuf| [trajectories::FILE, correlators::LINES].map(|name| path.join(name));
    paths.iter().flat_map(|path| in_folder(path).into_iter().chain([path.clone()])).collect()
}

/// Writes the page, and prints the means or the contents of the page.
pub fn run(args: &ReportArguments, context: &Context) -> Outcome {
    context.comm.only_one("ferrite report")?;
    let one = match args.paths.as_slice() {
        // A path that does not exist counts as a folder, so that reading it reports what is missing. A pipe counts as a file.
        [one] if one.is_dir() || !one.exists() => Some(one),
        _ => None,
    };
    let default = || one.map_or_else(|| "report.html".into(), |folder| folder.join("report.html"));
    let path = args.output.clone().unwrap_or_else(default);
    // The output file is checked after the input has been read, and before the page is made.
    let writable = || {
        // Other files in the folder of a run do not end in .html, so a report with this ending cannot replace one of them.
        if path.extension().is_none_or(|e| e != "html") {
            return Err(Failure::refused(format!(
                "{}: a report is HTML; choose a name that ends in .html",
                path.display()
            )));
        }
        target::claim(&context.comm, &target::all(&files(&args.paths)), &[&path])
    };
    let program = provenance::program();
    let write = |html: Result<String, ReportError>| target::write_text(&path, &html?).map_err(Failure::failed);
    let page = || format!("page: {}\n", path.display());
    if let Some(folder) = one.filter(|folder| CorrelatorRecord::is_in(folder)) {
        let spectrum = SpectrumReport::read(folder, folder_name(folder))?;
        writable()?;
        write(spectrum.html(&program))?;
        return context.output.record(&spectrum.record(folder, &path), || spectrum.text() + &page());
    }
    if let Some(folder) = one {
        let run = trajectories::read(folder)?;
        writable()?;
        let report = RhmcReport::new(folder_name(folder), run, args.skip);
        write(report.html(&program))?;
        return context.output.record(&report.record(folder, &path), || report.text() + &page());
    }
    let collection = CollectionReport::read(&args.paths, args.skip)?;
    writable()?;
    write(collection.html(&program))?;
    context.output.record(&collection.record(&path), || collection.text() + &page())
}
