//! The runs of a study, and what came of them.
use super::Arguments;
use crate::cli::device::Device;
use crate::cli::layout::LayoutChoice;
use crate::cli::report::data::{self, Trajectory};
use crate::cli::rhmc::input::{Input, SCHEMA};
use crate::cli::rhmc::{self, Job};
use crate::cli::{Context, Failure, Outcome, target};
use crate::config::Settings;
use ferrite::lattice::Lattice;
use ferrite::rhmc::integrator::{MINIMUM_NORM, Scheme};
use ferrite::statistics::average;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use tracing::info;

/// The settings of the paper, as `precision.preset` knows them.
const SETTINGS: [&str; 7] = ["A", "B", "C", "D", "E", "F", "G"];

/// A setting of precision and integrator on one of the lattices.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// For figures.
    pub name: String,
    /// Of its folder.
    folder: String,
    preset: &'static str,
    /// Links in double although the preset has them in single.
    double_links: bool,
    steps: u32,
    gauge_steps: u32,
}

/// The two lattices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Of figures 4 to 6.
    Small,
    /// Of figures 7 and 9.
    Large,
}

/// What a run is for.
enum Part {
    /// From a hot start at tenfold mass.
    Hot,
    /// From there on.
    Thermal,
    Setting(Setting),
}

/// A run of the study.
pub struct OneRun {
    size: Size,
    part: Part,
    /// Its folder.
    pub folder: PathBuf,
}

/// What came of a setting: means with their errors.
pub struct Row {
    /// Which lattice.
    pub size: Size,
    /// Its extents.
    pub lattice: Lattice,
    /// The setting.
    pub setting: Setting,
    /// Moves of the links in a trajectory.
    pub updates: usize,
    /// Trajectories.
    pub trajectories: usize,
    /// Plaquette, real part of the Polyakov loop, condensate.
    pub observables: [[f64; 2]; 3],
    /// Eqs. 14 and 15.
    pub irreversibility: [[f64; 2]; 2],
    /// ΔH
    pub delta: [f64; 2],
    /// Share of trajectories that were accepted.
    pub accepted: [f64; 2],
    /// Seconds of a trajectory.
    pub seconds: f64,
}

/// All runs.
pub struct Study<'a> {
    args: &'a Arguments,
}

impl<'a> Study<'a> {
    /// Checks the arguments.
    pub fn new(args: &'a Arguments) -> Outcome<Self> {
        let refuse = |why: String| Err(Failure::refused(why));
        if args.steps.len() != 2 {
            return refuse(format!("--steps: expected 2 numbers, for both lattices, not {}", args.steps.len()));
        }
        if args.lattice == args.large {
            return refuse(format!("--large: both lattices are {}", args.large));
        }
        let counts = [("--trajectories", args.trajectories), ("--reversibility", args.reversibility)];
        if let Some((flag, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return refuse(format!("{flag} 0: the study needs at least one"));
        }
        if args.thermalise < 2 || args.steps.contains(&1) || args.gauge_steps < 2 {
            return refuse("--thermalise, --steps and --gauge-steps are at least 2: some settings have half".into());
        }
        if args.reversibility > args.trajectories {
            return refuse(format!(
                "--reversibility {}: there are only {} trajectories",
                args.reversibility, args.trajectories
            ));
        }
        Ok(Study { args })
    }
    /// Makes the inputs of all runs.
    pub fn check(&self) -> Outcome {
        self.runs().iter().try_for_each(|run| self.input(run).map(|_| ()))
    }
    /// Makes the folder one of this study, or finds that it is.
    pub fn claim(&self) -> Outcome {
        let (args, path) = (self.args, self.args.out.join("study.json"));
        // All that must not change when it goes on.
        let mine = json!({
            "paper": "003",
            "lattices": [args.lattice.size(), args.large.size()],
            "mass": args.mass,
            "beta": args.beta,
            "thermalise": args.thermalise,
            "steps": args.steps,
            "gauge_steps": args.gauge_steps,
            "reversibility": args.reversibility,
            "seed": args.seed,
        });
        if let Ok(text) = fs::read_to_string(&path) {
            if serde_json::from_str::<Value>(&text).is_ok_and(|old| old == mine) {
                return Ok(());
            }
            let why = "has a study with other settings: name another folder, or give the same ones";
            return Err(Failure::refused(format!("{} {why}", args.out.display())));
        }
        let failed = |why| Failure::refused(format!("{} cannot be made: {why}", args.out.display()));
        fs::create_dir_all(&args.out).map_err(failed)?;
        target::write_text(&path, &format!("{mine:#}\n")).map_err(Failure::failed)
    }
    /// Extents of a lattice.
    pub fn lattice(&self, size: Size) -> Lattice {
        match size {
            Size::Small => self.args.lattice,
            Size::Large => self.args.large,
        }
    }
    /// What it all is about.
    pub fn title(&self) -> String {
        format!("two flavours of naive quarks, m = {}, beta = {}", self.args.mass, self.args.beta)
    }
    /// The folder of the study.
    pub fn folder(&self) -> &Path {
        &self.args.out
    }
    /// The settings on a lattice: A to G; on the small one also F with links in double, on the large one also F with half
    /// as many steps of one of both kinds.
    fn settings(&self, size: Size) -> Vec<Setting> {
        let (steps, gauge_steps) = (self.args.steps[size as usize], self.args.gauge_steps);
        let of = |preset: &'static str| Setting {
            name: preset.into(),
            folder: preset.into(),
            preset,
            double_links: false,
            steps,
            gauge_steps,
        };
        let mut all: Vec<Setting> = SETTINGS.map(of).into();
        match size {
            Size::Small => all.push(Setting {
                name: "F, links in double".into(),
                folder: "F-double-links".into(),
                double_links: true,
                ..of("F")
            }),
            Size::Large => {
                let name = |steps: u32, gauge: u32| format!("F, {steps} x {gauge}");
                let folder = |what: &str| format!("F-half-{what}");
                let (half, half_gauge) = (steps / 2, gauge_steps / 2);
                all.push(Setting { name: name(half, gauge_steps), folder: folder("steps"), steps: half, ..of("F") });
                all.push(Setting {
                    name: name(steps, half_gauge),
                    folder: folder("gauge-steps"),
                    gauge_steps: half_gauge,
                    ..of("F")
                });
            }
        }
        all
    }
    /// All runs, in an order in which each finds what it begins with.
    pub fn runs(&self) -> Vec<OneRun> {
        let of = |size: Size| {
            let settings = self.settings(size).into_iter().map(Part::Setting);
            let parts = [Part::Hot, Part::Thermal].into_iter().chain(settings);
            parts.map(move |part| OneRun { size, folder: self.place(size, part.folder()), part })
        };
        of(Size::Small).chain(of(Size::Large)).collect()
    }
    fn place(&self, size: Size, name: &str) -> PathBuf {
        let extents = self.lattice(size).size().map(|extent| extent.to_string()).join("x");
        self.args.out.join(extents).join(name)
    }
    /// Trajectories of the two runs before the settings.
    fn thermal(&self) -> [u32; 2] {
        [self.args.thermalise, self.args.thermalise / 2]
    }
    /// Makes the trajectories of a run that are missing. Answers whether it was interrupted.
    pub fn make(&self, run: &OneRun, layout: &LayoutChoice, device: &Device, context: &Context) -> Outcome<bool> {
        let input = self.input(run)?;
        let layout = layout.cut(&context.world, input.lattice, input.hops())?;
        info!("{}", run.folder.display());
        let resume = run.folder.join("state.toml").exists();
        let job = Job { input: &input, layout: &layout, device, out: &run.folder, resume, max_hours: None };
        Ok(rhmc::make(&job, None, context)?.interrupted)
    }
    fn input(&self, run: &OneRun) -> Outcome<Input> {
        let args = self.args;
        let last = |name: &str, number: u32| {
            self.place(run.size, name).join(format!("cfg.{number:06}.ildg")).display().to_string()
        };
        let [hot, thermal] = self.thermal();
        let (mass, start, trajectories, save_every) = match &run.part {
            Part::Hot => (10.0 * args.mass, "hot".into(), hot, hot),
            Part::Thermal => (args.mass, last("hot", hot), thermal, thermal),
            // None but the last, whatever their number will be.
            Part::Setting(_) => (args.mass, last("thermal", thermal), args.trajectories, u32::MAX - 1),
        };
        // A start must not depend on the numbers that it is evolved with.
        let seed = match &run.part {
            Part::Hot => args.seed ^ 1 << 40,
            Part::Thermal => args.seed ^ 1 << 41,
            Part::Setting(_) => args.seed,
        };
        let [x, y, z, t] = self.lattice(run.size).size();
        let mut keys = vec![
            format!("lattice={x},{y},{z},{t}"),
            format!("trajectories={trajectories}"),
            format!("seed={seed}"),
            format!("start={start}"),
            format!("save-every={save_every}"),
            "trajectory.length=1".into(),
            // Seconds are compared.
            "measure.kernels=0".into(),
            "gauge.action=wilson".into(),
            format!("gauge.beta={}", args.beta),
            "fermion.0.operator=naive".into(),
            format!("fermion.0.mass={mass}"),
            "fermion.0.flavours=2".into(),
            "fermion.0.pseudofermions=2".into(),
        ];
        match &run.part {
            Part::Hot | Part::Thermal => keys.extend([
                format!("trajectory.steps={}", args.steps[run.size as usize]),
                format!("trajectory.gauge-steps={}", args.gauge_steps),
                format!("thermalise={}", hot / 2),
                "measure.condensate=0".into(),
            ]),
            Part::Setting(setting) => {
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
        let mut settings = Settings::of(SCHEMA);
        settings.set(&keys);
        Input::from_settings(&mut settings, "bench rhmc")
    }
    /// What came of all settings.
    pub fn rows(&self) -> Outcome<Vec<Row>> {
        let mut rows = Vec::new();
        for run in self.runs() {
            if let Part::Setting(setting) = &run.part {
                rows.push(self.row(run.size, setting, &data::read(&run.folder)?.trajectories));
            }
        }
        Ok(rows)
    }
    fn row(&self, size: Size, setting: &Setting, trajectories: &[Trajectory]) -> Row {
        let of = |value: &dyn Fn(&Trajectory) -> Option<f64>| {
            let values: Vec<f64> = trajectories.iter().filter_map(value).filter(|x| x.is_finite()).collect();
            let average = average(&values);
            [average.mean, average.error]
        };
        let scheme = Scheme::Omelyan { lambda: MINIMUM_NORM };
        let share = of(&|t| Some(f64::from(u8::from(t.accepted))));
        Row {
            size,
            lattice: self.lattice(size),
            setting: setting.clone(),
            updates: scheme.drifts(setting.steps as usize) * scheme.drifts(setting.gauge_steps as usize),
            trajectories: trajectories.len(),
            observables: [
                of(&|t| Some(t.plaquette?[0])),
                of(&|t| Some(t.polyakov?[0])),
                of(&|t| Some(t.condensates.first()?[1])),
            ],
            irreversibility: [of(&|t| Some(t.irreversibility?[0])), of(&|t| Some(t.irreversibility?[1]))],
            delta: of(&|t| Some(t.delta)),
            accepted: share,
            seconds: of(&|t| t.irreversibility.is_none().then_some(t.seconds))[0],
        }
    }
}

impl Part {
    fn folder(&self) -> &str {
        match self {
            Part::Hot => "hot",
            Part::Thermal => "thermal",
            Part::Setting(setting) => &setting.folder,
        }
    }
}

impl Row {
    /// Whether links move in double.
    pub fn has_double_links(&self) -> bool {
        self.setting.double_links
    }
    /// For `--json`.
    pub fn json(&self) -> Value {
        let number = |x: f64| if x.is_finite() { json!(x) } else { Value::Null };
        let pair = |[mean, error]: [f64; 2]| json!({ "mean": number(mean), "error": number(error) });
        let [plaquette, polyakov, condensate] = self.observables;
        let [links, momenta] = self.irreversibility;
        json!({
            "lattice": self.lattice.size(),
            "setting": self.setting.name,
            "steps": self.setting.steps,
            "gauge_steps": self.setting.gauge_steps,
            "gauge_updates": self.updates,
            "trajectories": self.trajectories,
            "plaquette": pair(plaquette),
            "polyakov_loop": pair(polyakov),
            "condensate": pair(condensate),
            "irreversibility": { "links": pair(links), "momenta": pair(momenta) },
            "delta_h": pair(self.delta),
            "accepted": pair(self.accepted),
            "seconds": number(self.seconds),
        })
    }
}

/// For people.
pub fn table(rows: &[Row], device: &str) -> String {
    let mut text = format!("{device}\n");
    let mut lattice = None;
    for row in rows {
        if lattice != Some(row.lattice) {
            lattice = Some(row.lattice);
            let _ = writeln!(
                text,
                "{}\n{:<20} {:>12} {:>9} {:>19} {:>19} {:>10} {:>10} {:>17} {:>8} {:>8}",
                row.lattice,
                "setting",
                "trajectories",
                "updates",
                "plaquette",
                "condensate",
                "links",
                "momenta",
                "delta H",
                "accepted",
                "seconds"
            );
        }
        let pair = |[mean, error]: [f64; 2], digits: usize| format!("{mean:.digits$} ± {error:.digits$}");
        let seconds = if row.seconds.is_finite() { format!("{:.2}", row.seconds) } else { "–".into() };
        let [plaquette, _, condensate] = row.observables;
        let [[links, _], [momenta, _]] = row.irreversibility;
        let _ = writeln!(
            text,
            "{:<20} {:>12} {:>9} {:>19} {:>19} {:>10.2e} {:>10.2e} {:>17} {:>8.2} {seconds:>8}",
            row.setting.name,
            row.trajectories,
            row.updates,
            pair(plaquette, 5),
            pair(condensate, 4),
            links,
            momenta,
            pair(row.delta, 3),
            row.accepted[0]
        );
    }
    text + "links and momenta: irreversibility, eqs. 14 and 15 of the paper\n"
}
