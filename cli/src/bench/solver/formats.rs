//! Benchmark of CG on M†M for a staggered operator, in each requested format.
use super::table::Results;
use super::{SolverBenchArguments, columns};
use crate::batch::Needs;
use crate::bench::kernels::NO_SUCH_KERNELS;
use crate::failure::ReadBy;
use crate::host_links::with_tadpole;
use crate::layout::Cut;
use crate::plan::{self, RECONSTRUCTIONS, STRATEGIES, has_inverses, name_of, refuse_foreign_keys};
use crate::{Context, Failure, Outcome, text};
use ferrite::LinkStorage;
use ferrite::bench::solver::{Several, SolverScheme, SolverStudy, cell, cell_of_several, matrix_gflops, schemes};
use ferrite::domain::Domain;
use ferrite::field::host::{ColourVector, HostGauge};
use ferrite::lattice::Lattice;
use ferrite::operators::Definition;
use ferrite::operators::{Operator, StaggeredLinks};
use ferrite::solve::{Configuration, Request};
use ferrite_inputs::Input;
use ferrite_records::bench::BenchShifts;
use ferrite_records::object;
use serde_json::{Map, Value};
use std::path::Path;
use tracing::info;

/// Default bare masses.
const MASSES: [f64; 5] = [0.1, 0.05, 0.02, 0.01, 0.005];

/// Operator, shifts and schemes of a benchmark of a staggered operator.
pub struct FormatsPlan {
    operator: Operator,
    several: Option<Several>,
    schemes: Vec<SolverScheme>,
}

impl FormatsPlan {
    /// Reads `--operator` and the flags for staggered operators. Adds mistakes to `input`.
    pub fn new(args: &SolverBenchArguments, input: &mut Input) -> Outcome<Self> {
        let definition = plan::definition(input);
        let operator = definition.and_then(|definition| definition.resolve_all(input));
        if let Some(definition) = definition {
            refuse_foreign_keys(input, definition);
        }
        let plan::SystemKeys { shifts, shift_solver, .. } = input.read("");
        let (shifts, strategy) = (shifts.value(), shift_solver.value());
        if shifts.is_none() && strategy.is_some() {
            input.conflict(
                "shift-solver",
                "shifts",
                "applies only to --shifts: add --shifts, or remove --shift-solver",
            );
        }
        input.finish("the command line")?;
        let Some((operator, _)) = operator else { return Err(Failure::refused("no operator: give --operator NAME")) };
        let (precisions, reconstructions) = (args.formats.precisions()?, args.formats.reconstructions()?);
        let schemes = schemes(operator.definition(), &precisions, &reconstructions);
        if schemes.is_empty() {
            return Err(Failure::refused(NO_SUCH_KERNELS));
        }
        let several = shifts.map(|shifts| Several { shifts, strategy: strategy.unwrap_or_default() });
        Ok(FormatsPlan { operator, several, schemes })
    }
    /// Returns the masses of `--masses`, or the default masses.
    pub fn masses(&self, args: &SolverBenchArguments) -> Outcome<Vec<f64>> {
        let masses = args.masses.clone().unwrap_or(MASSES.to_vec());
        match &self.several {
            None if masses.iter().all(|m| m.is_finite() && *m > 0.0) => {}
            None => {
                let why = format!(
                    "--masses {}: expected finite numbers above 0 for staggered operators",
                    text::numbers(&masses)
                );
                return Err(Failure::refused(why));
            }
            Some(_) if !masses.iter().all(|m| m.is_finite() && *m >= 0.0) => {
                let why = format!(
                    "--masses {}: expected finite numbers of at least 0 for staggered operators",
                    text::numbers(&masses)
                );
                return Err(Failure::refused(why));
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
    /// Returns the device memory that the benchmark needs, by name.
    pub fn memory(&self, cut: Cut) -> Needs {
        let (sites, improved) = (cut.local.half_volume(), self.is_improved());
        let request = Request { reconstruction: LinkStorage::FULL, ..Request::new(&self.operator) };
        let shifts = self.several.as_ref().map(|several| several.shifts.len());
        let mut needs = request.memory(cut.local, &cut.grid, 1, shifts);
        // The device keeps the links in all formats at the same time.
        let formats =
            self.schemes.iter().map(|s| StaggeredLinks::bytes_for(improved, s.precision, s.reconstruction, sites));
        needs.push(("links in all formats", formats.sum()));
        needs
    }
    /// Solves in all formats that the links allow. Returns the results, and the operator with a number for its tadpole
    /// factor.
    pub fn work(
        &self,
        domain: &Domain,
        gauge: &HostGauge,
        plaquette: f64,
        name: &Path,
        study: &SolverStudy,
        context: &Context,
    ) -> Outcome<(Results, Operator)> {
        let operator = with_tadpole(&self.operator, name, plaquette, ReadBy::Flags)?;
        let configuration = Configuration::new(domain, gauge);
        let mut schemes = Vec::new();
        for scheme in &self.schemes {
            if configuration.possible(&operator, scheme.reconstruction)? == scheme.reconstruction {
                schemes.push(*scheme);
            } else {
                let recon = name_of(&RECONSTRUCTIONS, scheme.reconstruction);
                let name = super::table::name(scheme);
                info!(
                    "the column '{name}' is skipped, because some links of the {} operator cannot be stored with \
                     --reconstruct {recon}",
                    self.definition().title
                );
            }
        }
        if schemes.is_empty() {
            return Err(Failure::refused(format!(
                "--reconstruct: some links of the {} operator cannot be reconstructed from the requested numbers of \
                 reals; give --reconstruct {}",
                self.definition().title,
                if self.definition().is_in_u3() { "18,13,9, or some of these numbers" } else { "18" }
            ))
            .shared());
        }
        let mut results = Results::default();
        columns(
            &mut results,
            None,
            &schemes,
            study,
            context,
            |precision, storage| {
                Ok(matrix_gflops::<ColourVector>(&configuration, operator.with_mass(0.1), precision, storage)?)
            },
            |mass, scheme, watch| {
                let operator = operator.with_mass(mass);
                match &self.several {
                    Some(several) => cell_of_several(&configuration, study, several, operator, scheme, watch),
                    None => cell::<ColourVector>(&configuration, study, operator, scheme, watch),
                }
            },
        )?;
        Ok((results, operator))
    }
    /// Returns whether the operator has hops of three sites.
    pub fn is_improved(&self) -> bool {
        self.definition().is_improved()
    }
    /// Returns the definition of the operator.
    pub fn definition(&self) -> &'static Definition {
        self.operator.definition()
    }
    /// Returns the title of the results.
    pub fn title(&self) -> String {
        let systems = match &self.several {
            None => "CG on M^+ M".into(),
            Some(Several { shifts, strategy }) => {
                format!("{}, {}", text::count(shifts.len(), "shift"), name_of(&STRATEGIES, *strategy))
            }
        };
        format!("{} operator, {systems}: iterations", self.definition().title)
    }
    /// Returns the title of the plot.
    pub fn plot_title(&self, lattice: Lattice) -> String {
        match &self.several {
            None => format!("CG on {lattice}, {}", self.definition().title),
            Some(several) => {
                format!("{} on {lattice}, {}", text::count(several.shifts.len(), "shift"), self.definition().title)
            }
        }
    }
    /// Returns the parameters of the operator and of the series of shifts, under the names of their keys.
    pub fn parameters(&self, operator: &Operator) -> Map<String, Value> {
        let mut parameters = operator.describe_smearing(false);
        parameters.extend(object(&BenchShifts {
            shifts: self.several.as_ref().map(|several| several.shifts.clone()),
            shift_solver: self.several.as_ref().map(|several| name_of(&STRATEGIES, several.strategy).into()),
        }));
        parameters
    }
}
