//! Sections for the output of `ferrite fit`: fits of correlators, traces, the gradient flow, the static potential.
use super::fitted::{MOMENTUM, condensate_figure, correlator_figure, flow_figure, pcac_figure, potential_figure};
use super::traces;
use crate::analysis::flow::LEVEL;
use crate::analysis::traces::TraceAnalysis;
use crate::analysis::{COVARIANCES, SHAPES, estimate_of, estimate_text, quality_words};
use crate::error::ReportError;
use crate::page;
use crate::text::{count, escape};
use ferrite_records::fit::{
    CornellFitRecord, CorrelatorFitRecord, EstimateRecord, FitRecord, FunctionFit, HadronFitRecord, LeftOutDistance,
    PcacFitRecord, TraceMeans,
};
use ferrite_records::read::read;
use serde_json::Value;
use statistics::fit::correlator::States;
use statistics::jackknife::JackknifeEstimate;
use std::fmt::Write;

/// Section of a page on the output of `ferrite fit`.
pub struct FitSection {
    configurations: usize,
    bins: usize,
    hadrons: Vec<PrintedFit>,
    pcac: Vec<PrintedPcac>,
    traces: Vec<TraceAnalysis>,
    /// Flow times t and estimates of t² E.
    flow: Vec<(f64, Option<JackknifeEstimate>)>,
    scales: Vec<(&'static str, Option<JackknifeEstimate>)>,
    /// Distances R and estimates of V(R).
    potential: Vec<(f64, Option<JackknifeEstimate>)>,
    cornell: Option<(Vec<f64>, [f64; 2])>,
    /// Remarks on the fit of V(R), and the distances that it leaves out.
    potential_remarks: Vec<String>,
}

/// Correlator and fit as printed by `ferrite fit`.
struct PrintedFit {
    name: String,
    correlator: Vec<Option<JackknifeEstimate>>,
    fit: Option<(States, Vec<f64>, [usize; 2])>,
    energy: Option<JackknifeEstimate>,
    /// Name of the energy: `E`, or `E(1,0,0)` with a momentum.
    energy_name: String,
    quality: String,
    remarks: Vec<String>,
}

/// PCAC quark mass and fit as printed by `ferrite fit`.
struct PrintedPcac {
    name: String,
    masses: Vec<Option<JackknifeEstimate>>,
    mass: Option<JackknifeEstimate>,
    window: Option<[usize; 2]>,
    quality: String,
    remarks: Vec<String>,
}

fn put_remarks(html: &mut String, remarks: &[String]) {
    for remark in remarks {
        let _ = writeln!(html, "<p>{}.</p>", escape(remark));
    }
}

fn estimates(records: Vec<Option<EstimateRecord>>) -> Vec<Option<JackknifeEstimate>> {
    records.into_iter().map(estimate_of).collect()
}

impl PrintedFit {
    fn of(record: HadronFitRecord) -> Result<Self, String> {
        let HadronFitRecord { hadron, form, momentum, correlator, why, fit, .. } = record;
        let correlator = estimates(correlator.unwrap_or_default());
        let quality = quality(fit.as_ref().map(|fit| &fit.fit), why);
        let momentum = momentum.filter(|p| *p != [0; 3]).map(|p| p.map(|k| k.to_string()).join(","));
        let energy_name = momentum.as_ref().map_or("E".into(), |p| format!("E({p})"));
        let name = momentum.map_or(hadron.clone(), |p| format!("{hadron}{MOMENTUM}{p}"));
        let Some(CorrelatorFitRecord { states: count, extent, energy, fit, .. }) = fit else {
            return Ok(PrintedFit {
                name,
                correlator,
                fit: None,
                energy: None,
                energy_name,
                quality,
                remarks: Vec::new(),
            });
        };
        let shape = SHAPES.iter().find(|(name, _)| *name == form).map(|(_, shape)| *shape);
        let parameters = fit.parameters.unwrap_or_default();
        let fits = (1..=2).contains(&count) && parameters.len() == 2 * count && extent == correlator.len();
        let (Some(shape), true) = (shape, fits) else {
            return Err(format!("hadrons: {hadron}: form, extent, states or parameters are wrong"));
        };
        let states = States { shape, extent, count };
        Ok(PrintedFit {
            name,
            correlator,
            fit: Some((states, parameters, fit.window)),
            energy: estimate_of(energy),
            energy_name,
            quality,
            remarks: fit.remarks,
        })
    }
}

/// Describes χ² of a fit with its p-value, or the reason why there is no fit.
fn quality(fit: Option<&FunctionFit<usize>>, why: Option<String>) -> String {
    let Some(fit) = fit else { return why.unwrap_or_else(|| "without χ²".into()) };
    let is_full = fit.covariance == COVARIANCES[0].0;
    let expected = Some(fit.expected_chi2).filter(|expected| expected.is_finite() && !is_full);
    quality_words("χ²", fit.chi2, fit.dof, expected, fit.p_value)
}

fn trace(record: TraceMeans) -> TraceAnalysis {
    let TraceMeans { mass, gamma, real, imaginary, disconnected } = record;
    let [real, imaginary, disconnected] = [real, imaginary, disconnected].map(estimate_of);
    TraceAnalysis { mass, gamma, real, imaginary, disconnected }
}

impl PrintedPcac {
    fn of(record: PcacFitRecord) -> Self {
        let PcacFitRecord { hadron, masses, why, fit, .. } = record;
        PrintedPcac {
            name: hadron,
            masses: estimates(masses),
            quality: quality(fit.as_ref().map(|fit| &fit.fit), why),
            mass: estimate_of(fit.as_ref().and_then(|fit| fit.mass)),
            window: fit.as_ref().map(|fit| fit.fit.window),
            remarks: fit.map_or_else(Vec::new, |fit| fit.fit.remarks),
        }
    }
}

impl FitSection {
    /// Reads the section from the output of `ferrite fit`.
    ///
    /// # Errors
    /// A sentence that names a missing value.
    pub fn read(object: &Value) -> Result<Self, String> {
        let FitRecord { samples, hadrons, pcac, traces, flow, potential, .. } = read(object)?;
        let flow = flow.flatten();
        let scales = flow.as_ref().map_or_else(Vec::new, |flow| {
            let all = [("t₀", flow.t0), ("√(8 t₀)", flow.sqrt_8_t0), ("w₀", flow.w0), ("⟨Q²⟩", flow.charge_squared)];
            all.map(|(name, scale)| (name, estimate_of(scale))).to_vec()
        });
        let points = flow.map_or_else(Vec::new, |flow| flow.points);
        let (mut cornell, mut potential_remarks, mut at) = (None, Vec::new(), Vec::new());
        if let Some(potential) = potential.flatten() {
            at = potential.at;
            if let Some(CornellFitRecord { fit, .. }) = potential.cornell.fit {
                let ends = fit.window.map(|end| end.unwrap_or(f64::NAN));
                cornell = fit.parameters.map(|parameters| (parameters, ends));
                potential_remarks = fit.remarks;
            }
            let left_out = potential.left_out.iter().map(|LeftOutDistance { distance, why, .. }| {
                format!("|R| = {distance:.4} is left out of the fit of V(R): {why}")
            });
            potential_remarks.extend(left_out);
        }
        let hadrons = hadrons.unwrap_or_default().into_iter().map(PrintedFit::of);
        Ok(FitSection {
            configurations: samples.configurations,
            bins: samples.bins,
            hadrons: hadrons.collect::<Result<_, _>>()?,
            pcac: pcac.unwrap_or_default().into_iter().map(PrintedPcac::of).collect(),
            traces: traces.unwrap_or_default().into_iter().map(trace).collect(),
            flow: points.into_iter().map(|point| (point.t, estimate_of(point.scaled_energy))).collect(),
            scales,
            potential: at.into_iter().map(|at| (at.distance, estimate_of(at.potential))).collect(),
            cornell,
            potential_remarks,
        })
    }
    /// Returns a sentence that summarises the section.
    pub fn sentence(&self) -> String {
        let mut parts: Vec<String> = self.hadrons.iter().map(|one| one.name.clone()).collect();
        parts.extend(self.pcac.iter().map(|one| one.name.clone()));
        if !self.traces.is_empty() {
            parts.push(count(self.traces.len(), "trace"));
        }
        if !self.flow.is_empty() {
            parts.push("gradient flow".into());
        }
        if !self.potential.is_empty() {
            parts.push("static potential".into());
        }
        format!("fits of {}: {}", count(self.configurations, "configuration"), parts.join(", "))
    }
    /// Appends the section to a page; `name` is its heading.
    pub fn put(&self, html: &mut String, name: &str) -> Result<(), ReportError> {
        page::heading(html, &format!("Fits: {name}"));
        let _ = writeln!(html, "<p class=\"lead\">{}.</p>", escape(&self.sentence()));
        let errors = format!("errors over {}", count(self.bins, "bin"));
        for one in &self.hadrons {
            let energy =
                one.energy.map_or(String::new(), |e| format!("a {} = {}, ", one.energy_name, estimate_text(Some(e))));
            let _ = writeln!(html, "<p>{}: {energy}{}.</p>", escape(&one.name), escape(&one.quality));
            put_remarks(html, &one.remarks);
            let fit = one.fit.as_ref().map(|(states, parameters, window)| (*states, parameters.as_slice(), *window));
            page::put(html, &correlator_figure(&one.name, &one.correlator, fit, &errors)?);
        }
        for one in &self.pcac {
            let mass = if one.mass.is_some() { format!("a m = {}, ", estimate_text(one.mass)) } else { String::new() };
            let _ = writeln!(html, "<p>{}: {mass}{}.</p>", escape(&one.name), escape(&one.quality));
            put_remarks(html, &one.remarks);
            let plateau = one.mass.map(|mass| mass.value).zip(one.window);
            page::put(html, &pcac_figure(&one.name, &one.masses, plateau, &errors)?);
        }
        if !self.traces.is_empty() {
            traces::table(html, &self.traces, &[]);
            let _ = writeln!(html, "<p>Means over configurations; {errors}.</p>");
            let points: Vec<(f64, Option<JackknifeEstimate>)> =
                self.traces.iter().filter(|one| one.gamma == "1").map(|one| (one.mass, one.real)).collect();
            if points.len() > 1 {
                page::put(html, &condensate_figure(&points, &errors)?);
            }
        }
        if !self.flow.is_empty() {
            page::put(html, &flow_figure(&self.flow, LEVEL, &errors)?);
            for (name, scale) in self.scales.iter().filter(|(_, scale)| scale.is_some()) {
                let _ = writeln!(html, "<p>{name} = {}</p>", estimate_text(*scale));
            }
        }
        if !self.potential.is_empty() {
            let cornell = self.cornell.as_ref().map(|(parameters, window)| (parameters.as_slice(), *window));
            page::put(html, &potential_figure(&self.potential, cornell, &errors)?);
            put_remarks(html, &self.potential_remarks);
        }
        Ok(())
    }
}
