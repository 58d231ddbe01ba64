//! CG on M^+ M of staggered fermions, in every format asked for.
use super::table::Results;
use super::{Arguments, columns};
use crate::cli::batch::Needs;
use crate::cli::bench::kernels::NO_SUCH_KERNELS;
use crate::cli::layout::Cut;
use crate::cli::plan::{RECONSTRUCTIONS, name_of};
use crate::cli::staggered::{HostLinks, Kind, STRATEGIES, configuration, has_inverses};
use crate::cli::{Context, Failure, Outcome, text};
use crate::config::Settings;
use ferrite::bench::solver::{Scheme, Several, Study, staggered_cell, staggered_matrix_gflops, staggered_schemes};
use ferrite::dirac::{StaggeredParams, TimeBoundary};
use ferrite::domain::Domain;
use ferrite::field::host::HostGauge;
use ferrite::lattice::Lattice;
use ferrite::solve::{LinkStorage, Precision, Request, staggered_link_bytes};
use serde_json::{Value, json};
use tracing::info;

/// Bare masses if none are given.
const MASSES: [f64; 5] = [0.1, 0.05, 0.02, 0.01, 0.005];

/// What is solved and how.
pub struct Plan {
    kind: Kind,
    several: Option<Several>,
    schemes: Vec<Scheme>,
}

impl Plan {
    /// From `--operator` and what belongs to it; mistakes are noted in `settings`.
    pub fn new(args: &Arguments, settings: &mut Settings) -> Outcome<Self> {
        for (flag, given) in [("--paper", args.paper.is_some()), ("--table", args.table.is_some())] {
            if given {
                let why = format!("{flag} is for --operator wilson: the paper has no tables of staggered fermions");
                return Err(Failure::refused(why));
            }
        }
        let kind = Kind::from_settings(settings);
        let shifts = settings.numbers("shifts", "a number", |_| true);
        let strategy = settings.choice("shift-solver", &STRATEGIES);
        if shifts.is_none() && strategy.is_some() {
            settings.conflict("shift-solver", "shifts", "belongs to --shifts");
        }
        settings.finish("the command line")?;
        let Some(kind) = kind else { return Err(Failure::refused("the command line is incomplete")) };
        let schemes =
            staggered_schemes(kind != Kind::Naive, &args.formats.precisions()?, &args.formats.reconstructions()?);
        if schemes.is_empty() {
            return Err(Failure::refused(NO_SUCH_KERNELS));
        }
        let several = shifts.map(|shifts| Several { shifts, strategy: strategy.unwrap_or_default() });
        Ok(Plan { kind, several, schemes })
    }
    /// `--masses`.
    pub fn masses(&self, args: &Arguments) -> Outcome<Vec<f64>> {
        let masses = args.masses.clone().unwrap_or(MASSES.to_vec());
        match &self.several {
            None if masses.iter().all(|m| m.is_finite() && *m > 0.0) => {}
            None => return Err(Failure::refused("--masses of staggered operators are numbers above 0")),
            Some(_) if !masses.iter().all(|m| m.is_finite() && *m >= 0.0) => {
                return Err(Failure::refused("--masses of staggered operators are numbers that are not negative"));
            }
            Some(Several { shifts, .. }) => {
                for mass in &masses {
                    let fit = has_inverses(*mass, shifts);
                    fit.map_err(|why| Failure::refused(format!("--shifts at mass {mass}: {why}")))?;
                }
            }
        }
        Ok(masses)
    }
    /// Device memory, with names for what takes it.
    pub fn memory(&self, cut: Cut) -> Needs {
        let (sites, improved) = (cut.local.half_volume(), self.kind != Kind::Naive);
        let operator = StaggeredParams::new(1.0, TimeBoundary::Antiperiodic);
        let (precision, reconstruction) = (Precision::Double, LinkStorage::FULL);
        let request = Request { precision, reconstruction, ..Request::staggered(operator) };
        let shifts = self.several.as_ref().map(|several| several.shifts.len());
        let mut needs = request.staggered_memory(cut.local, &cut.grid, 1, improved, shifts);
        // All formats stay on the device.
        let formats = self.schemes.iter().map(|s| staggered_link_bytes(sites, improved, s.precision, s.reconstruction));
        needs.push(("links in all formats", formats.sum()));
        needs
    }
    /// Solves in all formats that the links allow; answers with the tadpole factor too.
    pub fn work(
        &self,
        domain: &Domain,
        (gauge, plaquette, name): (HostGauge, f64, &str),
        study: &Study,
        context: &Context,
    ) -> Outcome<(Results, f64)> {
        let u0 = self.kind.u0(name, plaquette).map_err(Failure::shared)?;
        let links = HostLinks::Thin(Box::new(gauge));
        let configuration = configuration(self.kind, domain, &links, u0)?;
        let mut schemes = Vec::new();
        for scheme in &self.schemes {
            if configuration.possible(scheme.reconstruction)? == scheme.reconstruction {
                schemes.push(*scheme);
            } else {
                let recon = name_of(&RECONSTRUCTIONS, scheme.reconstruction);
                info!("{}: left out, {recon} reals do not tell some of these links", super::table::name(scheme));
            }
        }
        if schemes.is_empty() {
            return Err(Failure::refused(format!(
                "--reconstruct: so few reals do not tell some links of the {} operator; use 18{}",
                self.kind.title(),
                if matches!(self.kind, Kind::Hisq(_)) { ", 13 or 9" } else { "" }
            ))
            .shared());
        }
        let mut results = Results::default();
        columns(
            (&mut results, None),
            &schemes,
            study,
            context,
            |precision, reconstruction| Ok(staggered_matrix_gflops(&configuration, precision, reconstruction)?),
            |mass, scheme, watch| staggered_cell(&configuration, study, self.several.as_ref(), mass, scheme, watch),
        )?;
        Ok((results, u0))
    }
    /// Whether hops of three sites are made.
    pub fn is_improved(&self) -> bool {
        self.kind != Kind::Naive
    }
    /// The operator's name among the values of `--operator`.
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }
    /// The title of the table.
    pub fn title(&self) -> String {
        let systems = match &self.several {
            None => "CG on M^+ M".into(),
            Some(Several { shifts, strategy }) => {
                format!("{}, {}", text::count(shifts.len(), "shift"), name_of(&STRATEGIES, *strategy))
            }
        };
        format!("{} operator, {systems}: iterations", self.kind.title())
    }
    /// The title of the plot.
    pub fn plot_title(&self, lattice: Lattice) -> String {
        match &self.several {
            None => format!("CG on {lattice}, {}", self.kind.title()),
            Some(several) => {
                format!("{} on {lattice}, {}", text::count(several.shifts.len(), "shift"), self.kind.title())
            }
        }
    }
    /// What JSON says of the operator.
    pub fn describe(&self, u0: f64) -> Value {
        json!({
            "u0": matches!(self.kind, Kind::Asqtad(_)).then_some(u0),
            "naik_epsilon": match self.kind { Kind::Hisq(epsilon) => Some(epsilon), _ => None },
            "shifts": self.several.as_ref().map(|several| &several.shifts),
            "shift_solver": self.several.as_ref().map(|several| name_of(&STRATEGIES, several.strategy)),
        })
    }
}
