//! The page: one HTML file that needs no other, and no scripts.
use super::Report;
use super::figures::{Figure, delta_histogram, delta_history, exponential, history, together};
use super::observables::{Kind, Observable, digits};
use super::settings;
use crate::cli::provenance;
use crate::plot::escape;
use serde_json::{Value, json};
use std::fmt::Write;

const STYLE: &str = "
:root { color-scheme: light }
body { font: 16px/1.5 system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif; color: #222;
  background: #fff; margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 60rem }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .6rem; padding-bottom: .2rem; border-bottom: 2px solid #0072b2 }
p { margin: .5rem 0 }
.lead { font-size: 1.1rem; color: #444 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; margin: 1rem 0 }
dt { color: #666 }
dd { margin: 0; overflow-wrap: anywhere }
ul.notes { background: #fff7e0; border-left: 4px solid #e69f00; margin: 1rem 0; padding: .6rem 1rem .6rem 2rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .25rem .7rem; border-bottom: 1px solid #ddd; white-space: nowrap }
th { border-bottom: 2px solid #999; font-weight: 600 }
th:first-child, td:first-child { text-align: left; white-space: normal; padding-left: 0 }
figure { margin: 1.4rem 0; overflow-x: auto }
figure svg { display: block; width: 100%; min-width: 38rem; height: auto }
figcaption { color: #444; font-size: .95rem; margin-top: .3rem; overflow-wrap: anywhere }
footer { margin-top: 3rem; color: #666; font-size: .9rem }
@page { margin: 15mm }
@media print { body { max-width: none; padding: 0; font-size: 11pt } figure, tr { break-inside: avoid }
  figure svg { min-width: 0 }
  h2 { break-after: avoid } ul.notes { background: none } }
";

/// The whole page of a run.
pub fn html(report: &Report) -> Result<String, String> {
    let mut page = begin(&format!("{}: report of a run", report.name));
    run(&mut page, report, "")?;
    end(&mut page, true);
    Ok(page)
}

/// The beginning of a page with this name.
pub fn begin(name: &str) -> String {
    let name = escape(name);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    )
}

/// The end of a page, with what there is to know of runs if there are any.
pub fn end(page: &mut String, runs: bool) {
    *page += "<footer>\n";
    if runs {
        *page += LEGEND;
    }
    let _ = write!(page, "<p>Made by {}.</p>\n</footer>\n</body>\n</html>\n", escape(&provenance::program()));
}

/// All of a run; `id` begins the names of its sections.
pub fn run(page: &mut String, report: &Report, id: &str) -> Result<(), String> {
    head(page, report, &escape(&report.name));
    table(page, report, id);
    energies(page, report, id)?;
    histories(page, report, id)?;
    cost(page, report, id)
}

/// The name of a section.
pub fn heading(page: &mut String, name: &str) {
    let _ = writeln!(page, "<h2>{}</h2>", escape(name));
}

/// What is known, with names for it.
pub fn facts<'f>(page: &mut String, facts: impl Iterator<Item = (&'f str, &'f str)>) {
    *page += "<dl>\n";
    for (what, value) in facts {
        let _ = writeln!(page, "<dt>{}</dt><dd>{}</dd>", escape(what), escape(value));
    }
    *page += "</dl>\n";
}

/// Extents as people write them; none where there are no four.
pub fn extents(value: &Value) -> Option<String> {
    let numbers: Vec<String> =
        value.as_array()?.iter().map(|n| n.as_u64().map(|n| n.to_string())).collect::<Option<_>>()?;
    (numbers.len() == 4).then(|| numbers.join("×"))
}

fn head(page: &mut String, report: &Report, name: &str) {
    let _ = writeln!(page, "<h1>{name}</h1>\n<p class=\"lead\">{}</p>", escape(&report.sentence()));
    let known = settings::facts(&report.run);
    if !known.is_empty() {
        facts(page, known.iter().map(|(what, value)| (what.as_str(), value.as_str())));
    }
    notes(page, &report.notes());
}

/// What deserves attention, if there is anything.
pub fn notes(page: &mut String, notes: &[String]) {
    if !notes.is_empty() {
        *page += "<ul class=\"notes\">\n";
        for note in notes {
            let _ = writeln!(page, "<li>{}</li>", escape(note));
        }
        *page += "</ul>\n";
    }
}

fn table(page: &mut String, report: &Report, id: &str) {
    let _ = writeln!(page, "<h2 id=\"{id}means\">Means</h2>");
    *page += "<div class=\"wide\">\n<table>\n<thead><tr><th>observable</th><th>mean</th>\
              <th>± error</th><th>τ<sub>int</sub></th><th>values</th></tr></thead>\n<tbody>\n";
    for observable in &report.observables {
        let [mean, error, tau, count] = cells(observable);
        let name = escape(&observable.name);
        let _ = writeln!(page, "<tr><td>{name}</td><td>{mean}</td><td>{error}</td><td>{tau}</td><td>{count}</td></tr>");
    }
    *page += "</tbody>\n</table>\n</div>\n";
    if report.observables.iter().any(Observable::is_short) {
        *page += "<p>* The series is shorter than fifty times 2 τ<sub>int</sub>: its error is a guess.</p>\n";
    }
}

/// Mean, error, autocorrelation time and number of values, as a table shows them; `–` for what is not known.
pub fn cells(observable: &Observable) -> [String; 4] {
    let estimate = &observable.estimate;
    let [mean, error] = digits(estimate.mean, estimate.error);
    let tau = if estimate.tau.is_finite() {
        let mark = if observable.is_short() { " *" } else { "" };
        format!("{}{mark}", digits(estimate.tau, estimate.tau_error).join(" ± "))
    } else {
        "–".into()
    };
    let every = observable.every();
    let count = if every > 1 { format!("{}, one in {every}", estimate.count) } else { estimate.count.to_string() };
    [mean, error, tau, count]
}

/// A figure.
pub fn put(page: &mut String, figure: &Figure) {
    let caption = escape(&figure.caption);
    let _ = writeln!(page, "<figure>\n{}<figcaption>{caption}</figcaption>\n</figure>", figure.svg);
}

fn energies(page: &mut String, report: &Report, id: &str) -> Result<(), String> {
    let _ = writeln!(page, "<h2 id=\"{id}energies\">ΔH</h2>");
    for observable in &report.observables {
        let figures = match observable.kind {
            Kind::Delta => [Some(delta_history(&report.run, observable)), delta_histogram(observable)],
            Kind::Exponential => [exponential(observable), None],
            _ => continue,
        };
        for figure in figures.into_iter().flatten() {
            put(page, &figure?);
        }
    }
    Ok(())
}

fn histories(page: &mut String, report: &Report, id: &str) -> Result<(), String> {
    let _ = writeln!(page, "<h2 id=\"{id}histories\">Histories</h2>");
    let mut measured = report.observables.iter().filter(|o| o.kind == Kind::Measured).peekable();
    if measured.peek().is_none() {
        *page += "<p>Nothing has been measured on the links yet.</p>\n";
    }
    for observable in measured {
        put(page, &history(observable)?);
    }
    Ok(())
}

fn cost(page: &mut String, report: &Report, id: &str) -> Result<(), String> {
    let _ = writeln!(page, "<h2 id=\"{id}cost\">Cost</h2>");
    let all = &report.observables;
    for name in &report.run.names {
        let of = Some(("quarks", json!(name)));
        let both: Vec<(&str, &Observable)> = all
            .iter()
            .filter(|o| o.kind == Kind::Iterations && o.of == of)
            .zip(["heat bath and Metropolis step", "molecular dynamics"])
            .map(|(observable, name)| (name, observable))
            .collect();
        if let Some(figure) = together(&both, &format!("Iterations of solvers, {name}"), "iterations") {
            put(page, &figure?);
        }
    }
    let seconds = all.iter().filter(|o| o.kind == Kind::Seconds).zip(["trajectory", "with observables", "files"]);
    let seconds: Vec<(&str, &Observable)> = seconds.map(|(observable, name)| (name, observable)).collect();
    if let Some(figure) = together(&seconds, "Seconds", "seconds") {
        put(page, &figure?);
    }
    if let Some(outside) = report.outside() {
        let _ = writeln!(page, "<p>{}</p>", escape(&outside));
    }
    Ok(())
}

const LEGEND: &str = "\
<p>Errors are one standard deviation of the mean, √(2 τ<sub>int</sub> σ² / n). τ<sub>int</sub> is the integrated
autocorrelation time, ½ + Σ ρ(t) up to the first t ≥ 6 τ<sub>int</sub> (Madras and Sokal 1988), in steps from one value to
the next; ½: independent. Bands around running averages have the τ<sub>int</sub> of the whole series. Plaquettes and
rectangles are Re tr / 3, the Polyakov loop is the mean over space of tr / 3, condensates are tr M⁻¹ per site of one
staggered field, M = m + D/2; docs/output.md has all definitions.</p>
";

#[cfg(test)]
mod tests {
    use super::super::data::parse;
    use super::super::data::tests::line;
    use super::*;

    fn report(lines: &[Value], skip: Option<usize>) -> Report {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        Report::new("a <b> & \"c\"".into(), parse(text.as_bytes(), "lines").unwrap(), skip)
    }

    /// Whether all that is opened is closed, in order, and nothing is left unescaped.
    fn check_markup(page: &str) {
        let mut open = Vec::new();
        let body = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
        let mut parts = body.split('<');
        assert_eq!(parts.next(), Some(""));
        for part in parts {
            let (tag, text) = part.split_once('>').unwrap_or_else(|| panic!("'<{part}' is no tag"));
            assert!(!text.contains('>'), "> in '{text}'");
            for after in part.split('&').skip(1) {
                let entity = after.split_once(';').map(|(name, _)| name);
                assert!(matches!(entity, Some("amp" | "lt" | "gt" | "quot" | "apos")), "&{after}");
            }
            assert_eq!(tag.matches('"').count() % 2, 0, "quotes of <{tag}>");
            let name = tag.trim_start_matches('/').split(|c: char| !c.is_alphanumeric()).next().unwrap();
            assert!(!name.is_empty(), "<{tag}>");
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name.to_string()));
            } else if !tag.ends_with('/') {
                open.push(name.to_string());
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    const SECTIONS: [&str; 4] = ["means", "energies", "histories", "cost"];

    #[test]
    fn pages_have_all_sections_and_sound_markup() {
        let deltas = [2.0, 0.4, 0.1, -0.3, 0.9, 0.2, -0.1, 0.05];
        let mut lines: Vec<Value> = deltas.iter().zip(1..).map(|(d, n)| line(n, *d)).collect();
        lines[0]["run"] = json!({ "lattice": [4, 4, 4, 8], "gauge": { "action": "<wilson>", "beta": 5.5 } });
        lines[3]["quarks"][0]["name"] = json!("odd & <even>");
        lines[4]["delta_h"] = Value::Null;
        let page = html(&report(&lines, None)).unwrap();
        check_markup(&page);
        for section in SECTIONS {
            assert!(page.contains(&format!("<h2 id=\"{section}\">")), "{section}");
        }
        // ΔH thrice, five histories, iterations of quarks of two names, and seconds.
        assert_eq!(page.matches("<svg").count(), 3 + 5 + 3);
        assert!(page.contains("<h1>a &lt;b&gt; &amp; &quot;c&quot;</h1>"));
        assert!(page.contains("4×4×4×8") && page.contains("&lt;wilson&gt;") && page.contains("odd &amp; &lt;even&gt;"));
        assert!(page.contains("condensate, m = 0.05"));
        // Nothing from elsewhere; the only address is the name of SVG's namespace.
        let plain = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for word in ["http", "<script", "<link", "<img", "src=", "@import", "url("] {
            assert!(!plain.contains(word), "{word}");
        }
    }

    #[test]
    fn one_trajectory_of_a_gauge_run_is_a_page() {
        let mut one = line(1, 0.3);
        one["metropolis"] = json!(true);
        one["quarks"] = json!([]);
        one.as_object_mut().unwrap().remove("condensate");
        let page = html(&report(&[one], None)).unwrap();
        check_markup(&page);
        assert!(SECTIONS.iter().all(|section| page.contains(&format!("<h2 id=\"{section}\">"))));
        assert!(!page.contains("condensate, m") && !page.contains("Iterations"));
        assert!(page.contains("<td>plaquette</td><td>0.503</td><td>–</td><td>–</td><td>1</td>"));
        assert!(!page.contains("NaN"));
    }

    #[test]
    fn a_run_that_is_thermalising_is_a_page() {
        let mut only = line(1, 0.3);
        for key in ["plaquette", "rectangle", "polyakov_loop", "condensate"] {
            only.as_object_mut().unwrap().remove(key);
        }
        only["delta_h"] = Value::Null;
        let page = html(&report(&[only], None)).unwrap();
        check_markup(&page);
        assert!(page.contains("Nothing has been measured") && page.contains("No trajectory is left"));
        assert!(!page.contains("NaN"));
    }
}
