//! Sections for the output of `ferrite fit`: fits of correlators, traces, the gradient flow, the static potential.
use super::fitted::{MOMENTUM, condensate_figure, correlator_figure, flow_figure, pcac_figure, potential_figure};
use super::traces;
use crate::analysis::flow::LEVEL;
use crate::analysis::traces::TraceAnalysis;
use crate::analysis::{COVARIANCES, SHAPES, estimate_of as estimate, estimate_text, quality_words};
use crate::error::ReportError;
use crate::page;
use crate::text::{count, escape};
use serde_json::Value;
use statistics::fit::correlator::States;
use statistics::jackknife::JackknifeEstimate;
use std::fmt::Write;

/// A printed fit.
pub struct FitSection {
    configurations: u64,
    bins: u64,
    hadrons: Vec<PrintedFit>,
    pcac: Vec<PrintedPcac>,
    traces: Vec<TraceAnalysis>,
    /// t and t² E.
    flow: Vec<(f64, Option<JackknifeEstimate>)>,
    scales: Vec<(&'static str, Option<JackknifeEstimate>)>,
    /// R and V(R).
    potential: Vec<(f64, Option<JackknifeEstimate>)>,
    cornell: Option<(Vec<f64>, [f64; 2])>,
    /// Remarks on the fit of V(R), and the distances that it leaves out.
    potential_remarks: Vec<String>,
}

/// Of a correlator.
struct PrintedFit {
    name: String,
    correlator: Vec<Option<JackknifeEstimate>>,
    fit: Option<(States, Vec<f64>, [usize; 2])>,
    energy: Option<JackknifeEstimate>,
    /// `E`, or `E(1,0,0)` with a momentum.
    energy_name: String,
    quality: String,
    remarks: Vec<String>,
}

/// Of a quark mass of the axial current.
struct PrintedPcac {
    name: String,
    masses: Vec<Option<JackknifeEstimate>>,
    mass: Option<JackknifeEstimate>,
    window: Option<[usize; 2]>,
    quality: String,
    remarks: Vec<String>,
}

fn texts(value: &Value) -> Vec<String> {
    list(value).iter().filter_map(|text| Some(text.as_str()?.to_string())).collect()
}

fn put_remarks(html: &mut String, remarks: &[String]) {
    for remark in remarks {
        let _ = writeln!(html, "<p>{}.</p>", escape(remark));
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

impl PrintedFit {
    fn read(object: &Value) -> Result<Self, String> {
        let name = object["hadron"].as_str().ok_or("hadrons: hadron is missing or not text")?.to_string();
        let correlator: Vec<_> = list(&object["correlator"]).iter().map(estimate).collect();
        let fit = if object["parameters"].is_null() {
            None
        } else {
            let found = || {
                let shape = SHAPES.iter().find(|(name, _)| object["form"] == **name)?.1;
                let (extent, count) = (object["extent"].as_u64()? as usize, object["states"].as_u64()? as usize);
                let parameters: Vec<f64> = serde_json::from_value(object["parameters"].clone()).ok()?;
                let window: [usize; 2] = serde_json::from_value(object["window"].clone()).ok()?;
                let fits = (1..=2).contains(&count) && parameters.len() == 2 * count && extent == correlator.len();
                fits.then_some((States { shape, extent, count }, parameters, window))
            };
            Some(found().ok_or_else(|| {
                format!("hadrons: {name}: form, extent, states, parameters or window is missing or wrong")
            })?)
        };
        let momentum = serde_json::from_value::<[i32; 3]>(object["momentum"].clone()).ok().filter(|p| *p != [0; 3]);
        let momentum = momentum.map(|p| p.map(|k| k.to_string()).join(","));
        let energy_name = momentum.as_ref().map_or("E".into(), |p| format!("E({p})"));
        let name = momentum.map_or(name.clone(), |p| format!("{name}{MOMENTUM}{p}"));
        let (energy, quality, remarks) = (estimate(&object["energy"]), quality(object), texts(&object["remarks"]));
        Ok(PrintedFit { name, correlator, fit, energy, energy_name, quality, remarks })
    }
}

/// χ² of a fit with its probability, or why there is none.
fn quality(object: &Value) -> String {
    let (Some(chi2), Some(dof)) = (object["chi2"].as_f64(), object["dof"].as_u64()) else {
        return object["why"].as_str().map_or_else(|| "without χ²".into(), String::from);
    };
    let is_full = object["covariance"] == COVARIANCES[0].0;
    let expected = object["expected_chi2"].as_f64().filter(|_| !is_full);
    quality_words("χ²", chi2, dof as usize, expected, object["p_value"].as_f64().unwrap_or(f64::NAN))
}

fn trace(value: &Value) -> Result<TraceAnalysis, String> {
    let found = || Some((value["mass"].as_f64()?, value["gamma"].as_str()?.to_string()));
    let (mass, gamma) = found().ok_or("traces: a trace has no mass or gamma")?;
    let [real, imaginary, disconnected] = ["real", "imaginary", "disconnected"].map(|key| estimate(&value[key]));
    Ok(TraceAnalysis { mass, gamma, real, imaginary, disconnected })
}

impl PrintedPcac {
    fn read(object: &Value) -> Result<Self, String> {
        Ok(PrintedPcac {
            name: object["hadron"].as_str().ok_or("pcac: hadron is missing or not text")?.to_string(),
            masses: list(&object["masses"]).iter().map(estimate).collect(),
            mass: estimate(&object["mass"]),
            window: serde_json::from_value(object["window"].clone()).ok(),
            quality: quality(object),
            remarks: texts(&object["remarks"]),
        })
    }
}

impl FitSection {
    /// From what the command prints.
    ///
    /// # Errors
    /// What is missing in it.
    pub fn read(object: &Value) -> Result<Self, String> {
        let number = |key: &str| object[key].as_u64().ok_or_else(|| format!("{key} is missing or not a whole number"));
        let hadrons = list(&object["hadrons"]).iter().map(PrintedFit::read).collect::<Result<_, _>>()?;
        let at = |value: &Value, key: &str, of: &str| Some((value[key].as_f64()?, estimate(&value[of])));
        let flow = list(&object["flow"]["points"]).iter().filter_map(|p| at(p, "t", "scaled_energy")).collect();
        let scales = [("t₀", "t0"), ("√(8 t₀)", "sqrt_8_t0"), ("w₀", "w0"), ("⟨Q²⟩", "charge_squared")];
        let scales = scales.map(|(name, key)| (name, estimate(&object["flow"][key])));
        let potential = &object["potential"];
        let cornell = &potential["cornell"];
        let cornell = serde_json::from_value::<[f64; 3]>(cornell["parameters"].clone())
            .ok()
            .zip(serde_json::from_value::<[f64; 2]>(cornell["window"].clone()).ok());
        let mut potential_remarks = texts(&potential["cornell"]["remarks"]);
        for one in list(&potential["left_out"]) {
            let (distance, why) =
                (one["distance"].as_f64().unwrap_or(f64::NAN), one["why"].as_str().unwrap_or_default());
            potential_remarks.push(format!("|R| = {distance:.4} is left out of the fit of V(R): {why}"));
        }
        Ok(FitSection {
            potential_remarks,
            configurations: number("configurations")?,
            bins: number("bins")?,
            hadrons,
            pcac: list(&object["pcac"]).iter().map(PrintedPcac::read).collect::<Result<_, _>>()?,
            traces: list(&object["traces"]).iter().map(trace).collect::<Result<_, _>>()?,
            flow,
            scales: if object["flow"].is_object() { scales.to_vec() } else { Vec::new() },
            potential: list(&potential["at"]).iter().filter_map(|p| at(p, "distance", "potential")).collect(),
            cornell: cornell.map(|(parameters, window)| (parameters.to_vec(), window)),
        })
    }
    /// In words.
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
        format!("fits of {}: {}", count(self.configurations as usize, "configuration"), parts.join(", "))
    }
    /// All of it, on a page.
    pub fn put(&self, html: &mut String, name: &str) -> Result<(), ReportError> {
        page::heading(html, &format!("Fits: {name}"));
        let _ = writeln!(html, "<p class=\"lead\">{}.</p>", escape(&self.sentence()));
        let errors = format!("errors over {}", count(self.bins as usize, "bin"));
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
