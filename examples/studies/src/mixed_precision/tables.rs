//! Study of Clark et al. 2009 with even-odd Wilson fermions.
use super::MixedPrecisionArguments;
use crate::batch::Needs;
use crate::layout::Cut;
use crate::{Context, Failure, Outcome};
use ferrite::bench::solver::{Cell, SolverScheme, SolverStudy, cell, matrix_gflops};
use ferrite::field::host::Spinor;
use ferrite::operators::{TimeBoundary, WilsonParams};
use ferrite::solve::{Configuration, Correction, Method, Request};
use ferrite::{LinkStorage, Precision};
use ferrite_cli::bench::solver::columns;
use ferrite_cli::bench::solver::table::Results;

/// Default bare masses.
const MASSES: [f64; 9] = [-0.785, -0.79, -0.795, -0.80, -0.803, -0.806, -0.808, -0.81, -0.812];

/// A table of Clark et al. 2009.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaperTable {
    /// Table 3: iterations of CG and BiCGstab in double precision.
    Three,
    /// Table 4: defect correction with several inner tolerances.
    Four,
    /// Table 5: reliable updates with several values of δ.
    Five,
}

impl PaperTable {
    /// Returns the columns of the table. They include more formats than those of the paper.
    pub fn schemes(self) -> Vec<SolverScheme> {
        use Precision::{Double, Fp16, Half, Single};
        let [eighteen, twelve, eight] = [18, 12, 8].map(LinkStorage::of);
        let scheme = |precision, reconstruction, correction| SolverScheme {
            method: Method::BICGSTAB,
            precision,
            reconstruction,
            correction,
        };
        let reliable = |delta| Correction::Reliable { delta: Some(delta) };
        let over = |precision, reconstruction, correction: &dyn Fn(f64) -> Correction, parameters: &[f64]| {
            parameters.iter().map(|p| scheme(precision, reconstruction, correction(*p))).collect::<Vec<_>>()
        };
        match self {
            PaperTable::Three => {
                let plain = scheme(Double, eighteen, Correction::default());
                let twelve = scheme(Double, twelve, Correction::default());
                vec![SolverScheme { method: Method::CG, ..twelve }, plain, twelve]
            }
            PaperTable::Four => {
                let defect = |inner_tol| Correction::Defect { inner_tol };
                let mut all = over(Half, twelve, &defect, &[1e-1, 1e-2]);
                all.extend(over(Fp16, twelve, &defect, &[1e-1]));
                all.extend(over(Single, eight, &defect, &[1e-3, 1e-4, 1e-5]));
                all.extend(over(Single, twelve, &defect, &[1e-5, 1e-6]));
                all
            }
            PaperTable::Five => {
                let mut all = over(Half, twelve, &reliable, &[1e-1, 1e-2, 1e-3]);
                all.extend(over(Fp16, twelve, &reliable, &[1e-1, 1e-2]));
                all.extend(over(Single, eight, &reliable, &[1e-1, 1e-2, 1e-3]));
                all.extend(over(Single, twelve, &reliable, &[1e-2, 1e-3]));
                all
            }
        }
    }
}

/// Requested tables of the paper, each with its number.
pub struct Tables(pub Vec<(u32, PaperTable)>);

impl Tables {
    /// Reads `--table`.
    pub fn new(args: &MixedPrecisionArguments) -> Outcome<Self> {
        let table = |number: &u32| match number {
            3 => Ok((3, PaperTable::Three)),
            4 => Ok((4, PaperTable::Four)),
            5 => Ok((5, PaperTable::Five)),
            other => Err(Failure::refused(format!("--table {other}: expected 3, 4 or 5"))),
        };
        let numbers = args.table.as_deref().unwrap_or(&[3, 4, 5]);
        numbers.iter().map(table).collect::<Outcome<Vec<_>>>().map(Tables)
    }
    /// Returns the masses of `--masses`, or the default masses.
    pub fn masses(args: &MixedPrecisionArguments) -> Outcome<Vec<f64>> {
        match &args.masses {
            None => Ok(MASSES.to_vec()),
            Some(masses) if masses.iter().all(|m| m.is_finite() && *m > -4.0) => Ok(masses.clone()),
            Some(masses) => {
                let why = format!("--masses {}: expected finite numbers above -4", crate::text::numbers(masses));
                Err(Failure::refused(why))
            }
        }
    }
    /// Returns the device memory that the study needs, by name.
    pub fn memory(&self, cut: Cut) -> Needs {
        // The device keeps links in the formats of all schemes, in addition to those in double precision.
        let operator = WilsonParams::from_mass(0.0, TimeBoundary::Antiperiodic);
        let request = Request { method: Method::CG, reconstruction: LinkStorage::FULL, ..Request::new(operator) };
        let mut needs = request.memory(cut.local, &cut.grid, 1, None);
        needs.push(("links in additional formats", 1152 * cut.local.half_volume()));
        needs
    }
    /// Solves for all masses and schemes of the requested tables.
    pub fn work(&self, configuration: &Configuration, study: &SolverStudy, context: &Context) -> Outcome<Results> {
        let mut results = Results::default();
        let of = |mass| WilsonParams::from_mass(mass, TimeBoundary::Antiperiodic).into();
        for (number, table) in &self.0 {
            columns(
                &mut results,
                Some(*number),
                &table.schemes(),
                study,
                context,
                |precision, storage| Ok(matrix_gflops::<Spinor>(configuration, of(0.1), precision, storage)?),
                |mass, scheme, watch| cell::<Spinor>(configuration, study, of(mass), scheme, watch),
            )?;
        }
        Ok(results)
    }
}

/// Returns the title of the table whose number in the paper is `number`.
pub fn title(number: u32) -> String {
    let what = match number {
        3 => "iterations in double precision",
        4 => "iterations of BiCGstab with defect correction in double precision",
        _ => "iterations of BiCGstab with reliable updates in double precision",
    };
    format!("Table {number}: {what}")
}

/// Returns whether figure 7 of the paper shows a cell of a table.
pub fn is_shown(cell: &Cell) -> bool {
    cell.scheme.method == Method::BICGSTAB
        && match cell.scheme.correction {
            Correction::Reliable { delta: Some(delta) } => {
                delta == 0.1
                    || cell.scheme.reconstruction == LinkStorage::of(12)
                        && cell.scheme.precision == Precision::Single
                        && delta == 0.01
            }
            Correction::Reliable { delta: None } => true,
            Correction::Defect { .. } => false,
        }
}
