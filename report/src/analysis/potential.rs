//! Static potential from Wilson loops of many configurations.
use super::{
    AnalysisChoice, average_text, estimate_records, estimate_text, fit_record, quality_text, quantity, remarks, why_not,
};
use ferrite_records::fit::{CornellFitRecord, CornellRecord, FunctionFit, LeftOutDistance, PotentialFit, PotentialRow};
use ferrite_records::measure::MeasurementLine;
use statistics::fit::Fit;
use statistics::fit::potential::{LoopsAt, Potential, PotentialAt, WithoutPotential, potential};

/// Static potential V(R), with the separations of the Wilson loops at each distance.
#[derive(Clone, Debug)]
pub struct PotentialAnalysis {
    /// Separations R in units of a, with three components each.
    pub separations: Vec<[usize; 3]>,
    /// V(R), and the fit of the Cornell form.
    pub potential: Potential,
}

impl PotentialAnalysis {
    /// Analyses configurations that have the same Wilson loops; returns `None` if they have none.
    pub fn of(all: &[MeasurementLine], choice: &AnalysisChoice) -> Option<Self> {
        let first = all.first().filter(|one| !one.wilson_loops.is_empty())?;
        let square = |r: &[usize; 3]| r.iter().map(|x| x * x).sum::<usize>();
        let mut order: Vec<usize> = (0..first.wilson_loops.len()).collect();
        order.sort_by_key(|k| square(&first.wilson_loops[*k].r));
        let one = |k: &usize| LoopsAt {
            distance: (square(&first.wilson_loops[*k].r) as f64).sqrt(),
            samples: choice.binned(&all.iter().map(|one| one.wilson_loops[*k].values.clone()).collect::<Vec<_>>()),
        };
        let loops: Vec<LoopsAt> = order.iter().map(one).collect();
        Some(PotentialAnalysis {
            separations: order.iter().map(|k| first.wilson_loops[*k].r).collect(),
            potential: potential(&loops, &choice.fits, choice.distances),
        })
    }
    /// Returns the JSON record of V(R) and of its fit.
    pub fn record(&self) -> PotentialFit {
        let Potential { at, fit, used, left_out } = &self.potential;
        let one = |(r, at): (&[usize; 3], &PotentialAt)| {
            let found = at.fit.as_ref().ok().map(|found| &found.fit);
            let there = |name: &str| found.filter(|fit| fit.names.contains(&name)).map(|fit| quantity(fit, name));
            // The fit numbers its data from 0; the datum with number 0 belongs to T = 1.
            let fit = found.map(|fit| FunctionFit {
                parameters: None,
                average: None,
                windows: None,
                ..fit_record(fit, &|k| k + 1, &[])
            });
            PotentialRow {
                r: *r,
                distance: at.distance,
                potential: found.and_then(|fit| quantity(fit, "energy")),
                amplitude: there("amplitude"),
                excited_energy: there("excited_energy"),
                excited_amplitude: there("excited_amplitude"),
                effective: estimate_records(&at.effective),
                why: at.fit.as_ref().err().map(why_not),
                fit,
            }
        };
        let distance = |k: usize| used.get(k).map(|k| at[*k].distance);
        let of_distances = |fit: &Fit| CornellFitRecord {
            r0: quantity(fit, "r0"),
            r1: quantity(fit, "r1"),
            string_tension: quantity(fit, "string_tension"),
            coulomb: quantity(fit, "coulomb"),
            constant: quantity(fit, "constant"),
            fit: fit_record(fit, &distance, &[]),
        };
        let cornell = CornellRecord { why: fit.as_ref().err().map(why_not), fit: fit.as_ref().ok().map(of_distances) };
        let without = |(k, why): &(usize, WithoutPotential)| LeftOutDistance {
            r: self.separations[*k],
            distance: at[*k].distance,
            why: why.to_string(),
        };
        PotentialFit {
            at: self.separations.iter().zip(at).map(one).collect(),
            cornell,
            left_out: left_out.iter().map(without).collect(),
        }
    }
    /// Returns V(R) as a table, and the results of the Cornell fit.
    pub fn text(&self) -> String {
        let mut text = format!("{:>10}{:>10}  {:<24}{:>8}  {}\n", "R", "|R|", "a V(R)", "T", "chi2/dof");
        for (r, at) in self.separations.iter().zip(&self.potential.at) {
            let r = r.map(|x| x.to_string()).join(",");
            let (value, window, quality) = match &at.fit {
                Ok(found) => {
                    let window = found.fit.best.window.map(|k| (k + 1).to_string()).join("–");
                    (estimate_text(found.fit.quantities[0]), window, quality_text(&found.fit))
                }
                Err(error) => ("–".into(), "–".into(), format!("no fit: {}", why_not(error))),
            };
            let quality = quality.trim_start_matches("chi2/dof = ").to_string();
            text += &format!("{r:>10}{:>10.4}  {value:<24}{window:>8}  {quality}\n", at.distance);
        }
        for (k, why) in &self.potential.left_out {
            text += &format!("|R| = {:.4} is left out of the fit of V(R): {why}\n", self.potential.at[*k].distance);
        }
        let fit = match &self.potential.fit {
            Ok(fit) => fit,
            Err(error) => return text + &format!("the fit of V(R) failed: {}\n", why_not(error)),
        };
        let [first, last] = fit.best.window.map(|k| self.potential.at[self.potential.used[k]].distance);
        text += &format!("V(R) = V0 - alpha/R + sigma R, R = {first:.3} to {last:.3}, {}\n", quality_text(fit));
        let names = ["r0", "r1", "a^2 sigma", "alpha", "a V0"];
        for (k, (name, quantity)) in names.iter().zip(&fit.quantities).enumerate() {
            let unit = if k < 2 && quantity.is_some() { " a" } else { "" };
            text += &format!("{name:<15}{}{unit}\n", estimate_text(*quantity));
            if let Some(average) = average_text(fit, k).filter(|_| k == 0) {
                text += &format!("{:<15}{average}\n", "");
            }
        }
        for remark in remarks(fit, &[]) {
            text += &format!("{:<15}{remark}\n", "");
        }
        text
    }
}
