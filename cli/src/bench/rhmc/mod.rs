//! `ferrite bench rhmc`.
mod study;

use crate::plot::{write_lines, write_svg};
use crate::text::lattice;
use crate::{Context, Failure, Outcome};
use clap::{Args, ValueEnum};
use ferrite::lattice::Lattice;
use ferrite_records::bench::BenchRhmcRecord;
use ferrite_report::plot::error_bars;
use ferrite_report::precision_study::{SettingResult, StudyFigure, figures, table};
use std::path::PathBuf;
use study::EnsembleStudy;

const EXAMPLES: &str = "\
Examples:
  ferrite bench rhmc --paper 003 --out settings
  ferrite bench rhmc --paper 003 --out settings --trajectories 200
  ferrite bench rhmc --paper 003 --out small --lattice 4,4,4,4 --large 8,8,8,4 --mass 0.1 --trajectories 4 --backend cpu

Repeats section 4.4 of Bonati, Cossu, D'Elia and Incardona (2011): two flavours of naive quarks in precision settings like
A to G of the paper, which does not print their residuals; those here are Ferrite's choice. All start from the same
thermalised configuration, on two lattices. DIR receives a folder for each run, and figures 4 to 9 of the paper:
observables, irreversibility and energy differences on the small lattice, irreversibility on the large one and against
the number of gauge updates, and acceptance on the large one. Ctrl-C ends the study after a trajectory; the same command
resumes it, and with a larger --trajectories extends it.";

/// Published study to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EnsemblePaper {
    /// Bonati, Cossu, D'Elia and Incardona 2011
    #[value(name = "003")]
    Staggered,
}

/// Arguments of `bench rhmc`.
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
    /// Small lattice
    #[arg(long, value_name = "X,Y,Z,T", value_parser = lattice, default_value = "16,16,16,4")]
    lattice: Lattice,
    /// Large lattice
    #[arg(long, value_name = "X,Y,Z,T", value_parser = lattice, default_value = "32,32,32,4")]
    large: Lattice,
    /// Mass of the two flavours
    #[arg(long, value_name = "M", default_value_t = 0.01335)]
    mass: f64,
    /// Gauge coupling beta
    #[arg(long, default_value_t = 5.26)]
    beta: f64,
    /// Number of trajectories in each setting
    #[arg(long, value_name = "N", default_value_t = 20)]
    trajectories: u32,
    /// Number of thermalising trajectories from a hot start, at first with ten times the mass, then half as many with the mass
    /// itself
    #[arg(long, value_name = "N", default_value_t = 40)]
    thermalise: u32,
    /// Numbers of steps of the quarks' force on the small and on the large lattice, separated by a comma, for trajectories of
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

/// Makes the runs, draws, and prints.
pub fn run(args: &EnsembleBenchArguments, context: &Context) -> Outcome {
    context.comm.only_one("bench rhmc")?;
    let study = EnsembleStudy::new(args)?;
    // All that can be refused is, before there is a folder.
    study.check()?;
    let choice = context.device_choice()?;
    let device = choice.open(&context.comm)?;
    study.claim()?;
    for run in study.runs() {
        if study.make(&run, &choice.layout, &device, context)? {
            let why = format!("stopped in {}; the same command resumes", run.folder.display());
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

/// Draws the figures of the paper, and answers with their files.
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
