//! Runs of a study, and their results.
use super::EnsembleBenchArguments;
use super::results::{LatticeSize, SettingResult, StudySetting, StudyTitle};
use crate::device::Device;
use crate::layout::LayoutChoice;
use crate::{Context, Failure, Outcome, target};
use ferrite::hmc::integrator::{MINIMUM_NORM, Scheme};
use ferrite::lattice::Lattice;
use ferrite_inputs::Input;
use ferrite_report::records::trajectories;
use ferrite_tasks::ensemble::input::{ENSEMBLE_SCHEMA, EnsembleInput};
use ferrite_tasks::ensemble::{self, Begin, EnsembleJob};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use tracing::info;

/// Names of the settings in the paper, which are values of `precision.preset`.
const SETTINGS: [&str; 7] = ["A", "B", "C", "D", "E", "F", "G"];

/// Setting of precision and integrator on one of the lattices.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSetting {
    /// Name of the setting in figures.
    pub name: String,
    /// Name of the folder of the run.
    folder: String,
    preset: &'static str,
    /// Whether links are in double precision, unlike in the preset.
    double_links: bool,
    steps: u32,
    gauge_steps: u32,
}

/// Purpose of a run.
enum RunPurpose {
    /// Thermalisation from a hot start, at ten times the mass.
    Hot,
    /// Thermalisation at the mass of the study, after the hot start.
    Thermal,
    Setting(RunSetting),
}

/// Run of the study: a thermalisation, or a setting, on one of the lattices.
pub struct OneRun {
    size: LatticeSize,
    part: RunPurpose,
    /// Folder of the run.
    pub folder: PathBuf,
}

/// Study with all its runs.
pub struct EnsembleStudy<'a> {
    args: &'a EnsembleBenchArguments,
}

/// Settings in `study.json`, which must not change when a study is resumed.
#[derive(PartialEq, Serialize, Deserialize)]
struct StudySettings {
    beta: f64,
    gauge_steps: u32,
    lattices: [[usize; 4]; 2],
    mass: f64,
    paper: String,
    reversibility: u32,
    seed: u64,
    steps: Vec<u32>,
    thermalise: u32,
}

impl<'a> EnsembleStudy<'a> {
    /// Checks the arguments, and returns the study.
    pub fn new(args: &'a EnsembleBenchArguments) -> Outcome<Self> {
        let refuse = |why: String| Err(Failure::refused(why));
        if args.steps.len() != 2 {
            let typed = args.steps.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            return refuse(format!("--steps {typed}: expected 2 numbers, one for each lattice, such as 16,24"));
        }
        if args.lattice == args.large {
            let typed = args.large.size().map(|extent| extent.to_string()).join(",");
            return refuse(format!("--large {typed}: --lattice has the same extents; choose different lattices"));
        }
        let counts = [("--trajectories", args.trajectories), ("--reversibility", args.reversibility)];
        if let Some((flag, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return refuse(format!("{flag} 0: expected at least 1"));
        }
        let halved = [("--thermalise", args.thermalise), ("--gauge-steps", args.gauge_steps)];
        let halved = halved.into_iter().chain(args.steps.iter().map(|steps| ("--steps", *steps)));
        if let Some((flag, value)) = halved.into_iter().find(|(_, value)| *value < 2) {
            return refuse(format!(
                "{flag}: {value} is too small; give at least 2, because some runs of the study use half of the number"
            ));
        }
        if args.reversibility > args.trajectories {
            return refuse(format!(
                "--reversibility {}: must be at most {}, the number of trajectories in a setting (--trajectories)",
                args.reversibility, args.trajectories
            ));
        }
        Ok(EnsembleStudy { args })
    }
    /// Fails if the input of any run has mistakes.
    pub fn check(&self) -> Outcome {
        self.runs().iter().try_for_each(|run| self.input(run).map(|_| ()))
    }
    /// Creates the folder of the study. Fails if it exists with other settings.
    pub fn claim(&self) -> Outcome {
        let (args, path) = (self.args, self.args.out.join("study.json"));
        // These settings must not change when the study is resumed.
        let mine = StudySettings {
            beta: args.beta,
            gauge_steps: args.gauge_steps,
            lattices: [args.lattice.size(), args.large.size()],
            mass: args.mass,
            paper: "003".into(),
            reversibility: args.reversibility,
            seed: args.seed,
            steps: args.steps.clone(),
            thermalise: args.thermalise,
        };
        if let Ok(text) = fs::read_to_string(&path) {
            if serde_json::from_str::<StudySettings>(&text).is_ok_and(|old| old == mine) {
                return Ok(());
            }
            let why = "contains a study with other settings (study.json): name another folder with --out, or give the \
                       flags with which that study was started";
            return Err(Failure::refused(format!("{} {why}", args.out.display())));
        }
        let failed = |why| Failure::refused(format!("the folder {} cannot be created: {why}", args.out.display()));
        fs::create_dir_all(&args.out).map_err(failed)?;
        let text = serde_json::to_string_pretty(&mine).map_err(Failure::failed)?;
        target::write_text(&path, &format!("{text}\n")).map_err(Failure::failed)
    }
    /// Returns the extents of the small or of the large lattice.
    pub fn lattice(&self, size: LatticeSize) -> Lattice {
        match size {
            LatticeSize::Small => self.args.lattice,
            LatticeSize::Large => self.args.large,
        }
    }
    /// Returns the title of the study, with both lattices and the action.
    pub fn title(&self) -> StudyTitle {
        let action = format!("two flavours of naive quarks, m = {}, beta = {}", self.args.mass, self.args.beta);
        StudyTitle { small: self.args.lattice.size(), large: self.args.large.size(), action }
    }
    /// Returns the folder of the study.
    pub fn folder(&self) -> &Path {
        &self.args.out
    }
    /// Returns the settings on a lattice: A to G; on the small lattice also F with links in double precision; on the large lattice also F
    /// with half as many steps, and with half as many gauge steps.
    fn settings(&self, size: LatticeSize) -> Vec<RunSetting> {
        let (steps, gauge_steps) = (self.args.steps[size as usize], self.args.gauge_steps);
        let of = |preset: &'static str| RunSetting {
            name: preset.into(),
            folder: preset.into(),
            preset,
            double_links: false,
            steps,
            gauge_steps,
        };
        let mut all: Vec<RunSetting> = SETTINGS.map(of).into();
        match size {
            LatticeSize::Small => all.push(RunSetting {
                name: "F, links in double".into(),
                folder: "F-double-links".into(),
                double_links: true,
                ..of("F")
            }),
            LatticeSize::Large => {
                let name = |steps: u32, gauge: u32| format!("F, {steps} x {gauge}");
                let folder = |what: &str| format!("F-half-{what}");
                let (half, half_gauge) = (steps / 2, gauge_steps / 2);
                all.push(RunSetting { name: name(half, gauge_steps), folder: folder("steps"), steps: half, ..of("F") });
                all.push(RunSetting {
                    name: name(steps, half_gauge),
                    folder: folder("gauge-steps"),
                    gauge_steps: half_gauge,
                    ..of("F")
                });
            }
        }
        all
    }
    /// Returns all runs, ordered so that each run finds the links from which it starts.
    pub fn runs(&self) -> Vec<OneRun> {
        let of = |size: LatticeSize| {
            let settings = self.settings(size).into_iter().map(RunPurpose::Setting);
            let parts = [RunPurpose::Hot, RunPurpose::Thermal].into_iter().chain(settings);
            parts.map(move |part| OneRun { size, folder: self.place(size, part.folder()), part })
        };
        of(LatticeSize::Small).chain(of(LatticeSize::Large)).collect()
    }
    fn place(&self, size: LatticeSize, name: &str) -> PathBuf {
        let extents = self.lattice(size).size().map(|extent| extent.to_string()).join("x");
        self.args.out.join(extents).join(name)
    }
    /// Returns the numbers of trajectories of the two thermalisations.
    fn thermal(&self) -> [u32; 2] {
        [self.args.thermalise, self.args.thermalise / 2]
    }
    /// Generates the missing trajectories of a run. Returns whether the run was interrupted.
    pub fn make(&self, run: &OneRun, layout: &LayoutChoice, device: &Device, context: &Context) -> Outcome<bool> {
        let input = self.input(run)?;
        let layout = layout.cut(&context.comm, input.lattice, input.hops())?;
        info!("{}", run.folder.display());
        let from = if run.folder.join("state.toml").exists() { Begin::Last } else { Begin::New };
        let job = EnsembleJob { input: &input, layout: &layout, device, out: &run.folder, from, max_hours: None };
        Ok(ensemble::make(&job, None, &context.session)?.interrupted)
    }
    fn input(&self, run: &OneRun) -> Outcome<EnsembleInput> {
        let args = self.args;
        let last = |name: &str, number: u32| {
            self.place(run.size, name).join(format!("cfg.{number:06}.ildg")).display().to_string()
        };
        let [hot, thermal] = self.thermal();
        let (mass, start, trajectories, save_every) = match &run.part {
            RunPurpose::Hot => (10.0 * args.mass, "hot".into(), hot, hot),
            RunPurpose::Thermal => (args.mass, last("hot", hot), thermal, thermal),
            // Only the last links are kept, in the state of the run: `save-every` exceeds any number of trajectories.
            RunPurpose::Setting(_) => (args.mass, last("thermal", thermal), args.trajectories, u32::MAX - 1),
        };
        // The random numbers of a setting must differ from those that made its initial links.
        let seed = match &run.part {
            RunPurpose::Hot => args.seed ^ 1 << 40,
            RunPurpose::Thermal => args.seed ^ 1 << 41,
            RunPurpose::Setting(_) => args.seed,
        };
        let [x, y, z, t] = self.lattice(run.size).size();
        let mut keys = vec![
            format!("lattice={x},{y},{z},{t}"),
            format!("trajectories={trajectories}"),
            format!("seed={seed}"),
            format!("start={start}"),
            format!("save-every={save_every}"),
            "trajectory.length=1".into(),
            // Kernels are not timed, because their timing would add to the times of trajectories, which the study compares.
            "measure.kernels=0".into(),
            "gauge.action=wilson".into(),
            format!("gauge.beta={}", args.beta),
            "fermion.0.operator=naive".into(),
            format!("fermion.0.mass={mass}"),
            "fermion.0.flavours=2".into(),
            "fermion.0.pseudofermions=2".into(),
        ];
        match &run.part {
            RunPurpose::Hot | RunPurpose::Thermal => keys.extend([
                format!("trajectory.steps={}", args.steps[run.size as usize]),
                format!("trajectory.gauge-steps={}", args.gauge_steps),
                format!("thermalise={}", hot / 2),
                "measure.condensate=0".into(),
            ]),
            RunPurpose::Setting(setting) => {
                keys.extend([
                    format!("trajectory.steps={}", setting.steps),
                    format!("trajectory.gauge-steps={}", setting.gauge_steps),
                    format!("precision.preset={}", setting.preset),
                    "measure.condensate=4".into(),
                    format!("measure.reversibility={}", args.reversibility),
                ]);
                if setting.double_links {
                    keys.push("precision.links=double".into());
                }
            }
        }
        let mut settings = Input::new(&ENSEMBLE_SCHEMA);
        settings.set(&keys);
        EnsembleInput::of(&mut settings, "ferrite-studies rhmc")
    }
    /// Returns the results of all settings.
    pub fn results(&self) -> Outcome<Vec<SettingResult>> {
        let scheme = Scheme::Omelyan { lambda: MINIMUM_NORM };
        let mut results = Vec::new();
        for run in self.runs() {
            let RunPurpose::Setting(RunSetting { name, double_links, steps, gauge_steps, .. }) = &run.part else {
                continue;
            };
            let setting = StudySetting {
                name: name.clone(),
                double_links: *double_links,
                steps: *steps,
                gauge_steps: *gauge_steps,
                updates: scheme.drifts(*steps as usize) * scheme.drifts(*gauge_steps as usize),
            };
            let trajectories = trajectories::read(&run.folder)?.trajectories;
            results.push(SettingResult::new(run.size, self.lattice(run.size).size(), setting, &trajectories));
        }
        Ok(results)
    }
}

impl RunPurpose {
    fn folder(&self) -> &str {
        match self {
            RunPurpose::Hot => "hot",
            RunPurpose::Thermal => "thermal",
            RunPurpose::Setting(setting) => &setting.folder,
        }
    }
}
