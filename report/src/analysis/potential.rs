//! The static potential from Wilson loops of many configurations.
use super::{AnalysisChoice, average_text, estimate_json, estimate_text, fit_json, quality_text, remarks, why_not};
use crate::records::measurements::Measurement;
use serde_json::{Value, json};
use statistics::fit::potential::{LoopsAt, Potential, potential};

/// The potential, with the separations that its distances belong to.
#[derive(Clone, Debug)]
pub struct PotentialAnalysis {
    /// R
    pub separations: Vec<[u32; 3]>,
    /// V(R), and Cornell's form.
    pub potential: Potential,
}

impl PotentialAnalysis {
    /// Of configurations, which have the same loops; `None` without them.
    pub fn of(all: &[Measurement], choice: &AnalysisChoice) -> Option<Self> {
        let first = all.first().filter(|one| !one.loops.is_empty())?;
        let square = |r: &[u32; 3]| r.iter().map(|x| x * x).sum::<u32>();
        let mut order: Vec<usize> = (0..first.loops.len()).collect();
        order.sort_by_key(|k| square(&first.loops[*k].separation));
        let one = |k: &usize| LoopsAt {
            distance: f64::from(square(&first.loops[*k].separation)).sqrt(),
            samples: choice.binned(&all.iter().map(|one| one.loops[*k].values.clone()).collect::<Vec<_>>()),
        };
        let loops: Vec<LoopsAt> = order.iter().map(one).collect();
        Some(PotentialAnalysis {
            separations: order.iter().map(|k| first.loops[*k].separation).collect(),
            potential: potential(&loops, &choice.fits, choice.distances),
        })
    }
    /// For JSON.
    pub fn json(&self) -> Value {
        let at = self.separations.iter().zip(&self.potential.at).map(|(r, at)| {
            let mut object = match &at.fit {
                Ok(found) => {
                    // Data are counted from T = 1 on.
                    let mut object = fit_json(&found.fit, &|k| json!(k + 1), &[]);
                    object["potential"] = object["energy"].take();
                    object
                }
                Err(error) => json!({ "why": why_not(error), "potential": null }),
            };
            if let Value::Object(fields) = &mut object {
                fields.retain(|key, _| !["energy", "windows", "parameters", "average"].contains(&key.as_str()));
            }
            object["r"] = json!(r);
            object["distance"] = json!(at.distance);
            object["effective"] = at.effective.iter().map(|v| estimate_json(*v)).collect();
            object
        });
        let at: Vec<Value> = at.collect();
        let distance = |k: usize| json!(self.potential.used.get(k).map(|k| self.potential.at[*k].distance));
        let cornell = match &self.potential.fit {
            Ok(fit) => fit_json(fit, &distance, &[]),
            Err(error) => json!({ "why": why_not(error) }),
        };
        let left_out = self.potential.left_out.iter().map(|(k, why)| {
            json!({ "r": self.separations[*k], "distance": self.potential.at[*k].distance, "why": why.to_string() })
        });
        json!({ "at": at, "cornell": cornell, "left_out": left_out.collect::<Vec<_>>() })
    }
    /// V(R) in a table, and what Cornell's form gives.
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
            Err(error) => return text + &format!("no fit of V(R): {}\n", why_not(error)),
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
