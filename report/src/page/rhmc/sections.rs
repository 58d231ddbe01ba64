//! Sections of the page on a run.
use super::RhmcReport;
use super::figures::{delta_histogram, delta_history, exponential, history, together};
use super::observables::{Observable, ObservableKind, ObservableOf};
use crate::error::ReportError;
use crate::page;
use crate::records::run_settings as settings;
use crate::text::{digits, escape};
use std::fmt::Write;

/// Appends all sections of a run to a page. `id` is the prefix of the identifiers of the sections in HTML.
pub fn put(page: &mut String, report: &RhmcReport, id: &str) -> Result<(), ReportError> {
    head(page, report, &escape(&report.name));
    table(page, report, id);
    energies(page, report, id)?;
    histories(page, report, id)?;
    cost(page, report, id)
}

fn head(page: &mut String, report: &RhmcReport, name: &str) {
    let _ = writeln!(page, "<h1>{name}</h1>\n<p class=\"lead\">{}</p>", escape(&report.sentence()));
    let known = settings::facts(&report.run);
    if !known.is_empty() {
        page::facts(page, known.iter().map(|(what, value)| (what.as_str(), value.as_str())));
    }
    page::notes(page, &report.notes());
}

fn table(page: &mut String, report: &RhmcReport, id: &str) {
    let _ = writeln!(page, "<h2 id=\"{id}means\">Means</h2>");
    *page += "<div class=\"wide\">\n<table>\n<thead><tr><th>observable</th><th>mean</th>\
              <th>± error</th><th>τ<sub>int</sub></th><th>values</th></tr></thead>\n<tbody>\n";
    for observable in &report.observables {
        let [mean, error, tau, count] = cells(observable).map(|text| page::cell(&text));
        let name = escape(&observable.name);
        let _ = writeln!(page, "<tr><td>{name}</td><td>{mean}</td><td>{error}</td><td>{tau}</td><td>{count}</td></tr>");
    }
    *page += "</tbody>\n</table>\n</div>\n";
    if report.observables.iter().any(Observable::is_short) {
        *page += "<p>* The series is shorter than fifty times 2 τ<sub>int</sub>: its error is not reliable.</p>\n";
    }
}

/// Formats mean, error, autocorrelation time and number of values for a table, with `–` for unknown values.
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

fn energies(page: &mut String, report: &RhmcReport, id: &str) -> Result<(), ReportError> {
    let _ = writeln!(page, "<h2 id=\"{id}energies\">ΔH</h2>");
    for observable in &report.observables {
        let figures = match observable.kind {
            ObservableKind::Delta => [Some(delta_history(&report.run, observable)), delta_histogram(observable)],
            ObservableKind::Exponential => [exponential(observable), None],
            _ => continue,
        };
        for figure in figures.into_iter().flatten() {
            page::put(page, &figure?);
        }
    }
    Ok(())
}

fn histories(page: &mut String, report: &RhmcReport, id: &str) -> Result<(), ReportError> {
    let _ = writeln!(page, "<h2 id=\"{id}histories\">Histories</h2>");
    let mut measured = report.observables.iter().filter(|o| o.kind == ObservableKind::Measured).peekable();
    if measured.peek().is_none() {
        *page += "<p>No observables have been measured yet.</p>\n";
    }
    for observable in measured {
        page::put(page, &history(observable)?);
    }
    Ok(())
}

fn cost(page: &mut String, report: &RhmcReport, id: &str) -> Result<(), ReportError> {
    let _ = writeln!(page, "<h2 id=\"{id}cost\">Cost</h2>");
    let all = &report.observables;
    for name in &report.run.names {
        let of = Some(ObservableOf::Quarks(name.clone()));
        let both: Vec<(&str, &Observable)> = all
            .iter()
            .filter(|o| o.kind == ObservableKind::Iterations && o.of == of)
            .zip(["heat bath and Metropolis step", "molecular dynamics"])
            .map(|(observable, name)| (name, observable))
            .collect();
        if let Some(figure) = together(&both, &format!("Iterations of solvers, {name}"), "iterations") {
            page::put(page, &figure?);
        }
    }
    let seconds =
        all.iter().filter(|o| o.kind == ObservableKind::Seconds).zip(["trajectory", "with observables", "files"]);
    let seconds: Vec<(&str, &Observable)> = seconds.map(|(observable, name)| (name, observable)).collect();
    if let Some(figure) = together(&seconds, "Seconds", "seconds") {
        page::put(page, &figure?);
    }
    if let Some(outside) = report.outside() {
        let _ = writeln!(page, "<p>{}</p>", escape(&outside));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::trajectories::parse;
    use crate::records::trajectories::tests::line;
    use serde_json::{Value, json};

    fn report(lines: &[Value], skip: Option<usize>) -> RhmcReport {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        RhmcReport::new("a <b> & \"c\"".into(), parse(text.as_bytes(), "lines").unwrap(), skip)
    }

    /// Whether all that is opened is closed, in order, and nothing is left unescaped.
    fn check_markup(page: &str) {
        let mut open = Vec::new();
        let body = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
        let mut parts = body.split('<');
        assert_eq!(parts.next(), Some(""));
        for part in parts {
            let (tag, text) = part.split_once('>').unwrap_or_else(|| panic!("'<{part}' is not a tag"));
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
        let page = report(&lines, None).html("ferrite").unwrap();
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
        let page = report(&[one], None).html("ferrite").unwrap();
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
        let page = report(&[only], None).html("ferrite").unwrap();
        check_markup(&page);
        assert!(page.contains("No observables have been measured") && page.contains("No trajectory remains"));
        assert!(!page.contains("NaN"));
    }
}
