//! Command `ferrite-studies rhmc`.
mod results;
mod study;

use crate::plot::{write_lines, write_svg};
use crate::records::BenchRhmcRecord;
use crate::text::lattice;
use crate::{Context, Failure, Outcome};
use clap::{Args, ValueEnum};
use ferrite::lattice::Lattice;
use ferrite_report::plot::error_bars;
use results::{SettingResult, StudyFigure, figures, table};
use std::path::PathBuf;
use study::EnsembleStudy;

const EXAMPLES: &str = "\
Examples:
  ferrite-studies rhmc --paper 003 --out settings
  ferrite-studies rhmc --paper 003 --out settings --trajectories 200
  ferrite-studies rhmc --paper 003 --out small --lattice 4,4,4,4 --large 8,8,8,4 --mass 0.1 --trajectories 4 --backend cpu

Repeats section 4.4 of Bonati, Cossu, D'Elia and Incardona (2011): two flavours of naive quarks in precision settings like
A to G of the paper, which does not print their residuals; those here are Ferrite's choice. All start from the same
thermalised configuration, on two lattices. DIR receives a folder for each run, and figures 4 to 9 of the paper:
observables, irreversibility and energy differences on the small lattice, irreversibility on the large one and against
the number of gauge updates, and acceptance on the large one. Ctrl-C ends the study after a trajectory; run the same
command again to resume the study, or with a larger --trajectories to extend it.";

/// Published study to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EnsemblePaper {
    /// Bonati, Cossu, D'Elia and Incardona 2011
    #[value(name = "003")]
    Staggered,
}

/// Arguments of `ferrite-studies rhmc`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct EnsembleBenchArguments {
    /// Study to repeat
    #[arg(long, value_enum)]
    #[allow(dead_code)] // there is one
    paper: EnsemblePaper,
    /// Folder for the runs and the figures
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Extents of the small lattice
    #[arg(long, value_name = "X,Y,Z,T", value_parser = lattice, default_value = "16,16,16,4")]
    lattice: Lattice,
    /// Extents of the large lattice
    #[arg(long, value_name = "X,Y,Z,T", value_parser = lattice, default_value = "32,32,32,4")]
    large: Lattice,
    /// Bare mass of the two flavours in lattice units
    #[arg(long, value_name = "M", default_value_t = 0.01335)]
    mass: f64,
    /// Gauge coupling beta
    #[arg(long, default_value_t = 5.26)]
    beta: f64,
    /// Number of trajectories in each setting
    #[arg(long, value_name = "N", default_value_t = 20)]
    trajectories: u32,
    /// Number of thermalising trajectories with ten times --mass after a hot start; half as many with --mass follow
    #[arg(long, value_name = "N", default_value_t = 40)]
    thermalise: u32,
    /// Numbers of integration steps with the quark force on the small and on the large lattice, separated by a comma, for trajectories of
    /// length 1
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [16, 24])]
    steps: Vec<u32>,
    /// Number of steps of the gauge force between two steps of the quarks' force
    #[arg(long, value_name = "N", default_value_t = 4)]
    gauge_steps: u32,
    /// Run every Nth trajectory backwards to measure irreversibility
    #[arg(long, value_name = "N", default_value_t = 2)]
    reversibility: u32,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Runs the ensembles of the study, draws the figures, and prints the means.
pub fn run(args: &EnsembleBenchArguments, context: &Context) -> Outcome {
    context.comm.only_one("ferrite-studies rhmc")?;
    let study = EnsembleStudy::new(args)?;
    // Arguments are checked before a folder is created.
    study.check()?;
    let choice = context.device_choice()?;
    let device = choice.open(&context.comm)?;
    study.claim()?;
    for run in study.runs() {
        if study.make(&run, &choice.layout, &device, context)? {
            let why = format!("the study stopped in {}; run the same command again to resume it", run.folder.display());
            return Err(context.session.stopped(why));
        }
    }
    let results = study.results()?;
    let files = draw(&study, &results)?;
    let record = BenchRhmcRecord {
        output: args.out.clone(),
        mass: args.mass,
        beta: args.beta,
        rows: results.iter().map(SettingResult::record).collect(),
        figures: files,
        backend: device.name().into(),
        device: device.describe(),
    };
    context.output.record(&record, || table(&results, &device.describe()))
}

/// Draws the figures of the paper, and returns the paths of their files.
fn draw(study: &EnsembleStudy, results: &[SettingResult]) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for (number, figure) in figures(&study.title(), results) {
        let path = study.folder().join(format!("figure-{number}.svg"));
        let written = match figure {
            StudyFigure::Settings(plot) => write_svg(&path, error_bars::svg(&plot)),
            StudyFigure::Updates(plot) => write_lines(&path, &plot),
        };
        written.map_err(Failure::failed)?;
        files.push(path);
    }
    Ok(files)
}
