//! Quark masses of the axial current, from correlators of `ferrite spectrum`.
use super::{
    AnalysisChoice, average_text, estimate_cell, estimate_records, estimate_text, fit_record, quality_text, quantity,
    remarks, why_not,
};
use crate::records::correlators::{Correlators, PcacChannel};
use ferrite_records::fit::{PcacFitRecord, PlateauFitRecord};
use statistics::fit::{Fit, FitError};
use statistics::jackknife::JackknifeEstimate;
use statistics::pcac::{fit_pcac, pcac_masses, pcac_samples};

/// Fit of a plateau to the PCAC quark mass m(t).
#[derive(Clone, Debug)]
pub struct PcacFit {
    /// Displayed name of the quark mass.
    pub name: String,
    /// Improvement coefficient c_A of the axial current.
    pub improvement: f64,
    /// Estimates of m(t) at the times 0 to T/2; the first is `None`.
    pub masses: Vec<Option<JackknifeEstimate>>,
    /// Result of the fit of a constant, or the reason why there is none.
    pub fit: Result<Fit, FitError>,
}

impl PcacFit {
    /// Fits the mass from all configurations with the improvement coefficient c_A; `None` if one of the two correlators is missing.
    pub fn of(channel: &PcacChannel, all: &[Correlators], improvement: f64, choice: &AnalysisChoice) -> Option<Self> {
        let samples = |k: usize| -> Option<Vec<Vec<f64>>> {
            all.iter().map(|found| found.mean(&channel.parts[k..=k])).collect::<Option<_>>()
        };
        let samples = pcac_samples(&choice.binned(&samples(0)?), &choice.binned(&samples(1)?), 1);
        let masses = choice.fits.resampling.estimate(&samples, |mean| {
            let (axial, pion) = mean.split_at(mean.len() / 2);
            pcac_masses(axial, pion, improvement)
        });
        let fit = fit_pcac(&samples, improvement, &choice.fits);
        Some(PcacFit { name: channel.name.clone(), improvement, masses, fit })
    }
    /// Returns the JSON record of the masses, and of the fit or the reason why there is none.
    pub fn record(&self) -> PcacFitRecord {
        let plateau = |fit: &Fit| PlateauFitRecord { mass: quantity(fit, "mass"), fit: fit_record(fit, &|t| t, &[]) };
        PcacFitRecord {
            hadron: self.name.clone(),
            c_a: self.improvement,
            masses: estimate_records(&self.masses),
            why: self.fit.as_ref().err().map(why_not),
            fit: self.fit.as_ref().ok().map(plateau),
        }
    }
    /// Returns text on the fit: a line on the best window, and a line on the mean over windows.
    pub fn text(&self) -> String {
        let fit = match &self.fit {
            Ok(fit) => fit,
            Err(error) => return format!("{:<15}no fit: {}\n", self.name, why_not(error)),
        };
        let ([first, last], mass) = (fit.best.window, estimate_text(fit.quantities[0]));
        let mut text =
            format!("{:<15}a m = {mass}; constant, t = {first} to {last}, {}\n", self.name, quality_text(fit));
        if let Some(average) = average_text(fit, 0) {
            text += &format!("{:<15}{average}\n", "");
        }
        for remark in remarks(fit, &[]) {
            text += &format!("{:<15}{remark}\n", "");
        }
        text
    }
    /// Returns the masses m(t) as a table.
    pub fn masses_text(&self) -> String {
        let mut text = format!("{:<15}{:>8}  a m(t)\n", "", "t");
        for (t, mass) in self.masses.iter().enumerate().skip(1) {
            text += &format!("{:<15}{t:>8}  {}\n", "", estimate_cell(*mass));
        }
        text
    }
    /// Returns the fitted mass and the first and last time of its window; `None` without a fit.
    pub fn plateau(&self) -> Option<(f64, [usize; 2])> {
        let fit = self.fit.as_ref().ok()?;
        Some((fit.quantities[0]?.value, fit.best.window))
    }
}
