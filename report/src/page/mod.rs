//! HTML pages of reports. Each page is a single file without scripts that needs no other file.
//!
//! | module | what |
//! |---|---|
//! | [`rhmc`] | a run of `ferrite rhmc` |
//! | [`spectrum`] | a folder of `ferrite spectrum` |
//! | `convergence`, `shifts` | output of `ferrite solve`, for one system and for several |
//! | `scaling` | benchmarks and models for several numbers of processes |
//! | `timeline` | traces of `ferrite bench halo` |
//! | `measurements` | results of `ferrite measure` on many configurations |
//! | `traces` | results of `ferrite trace` on many configurations |
//! | `fits` | output of `ferrite fit` |
//! | [`collection`] | several of these on one page |
pub mod collection;
mod convergence;
mod figure;
mod fits;
mod fitted;
mod histories;
mod measurements;
pub mod rhmc;
mod scaling;
mod shifts;
pub mod spectrum;
mod timeline;
mod traces;

use crate::analysis::hadrons::HadronFit;
use crate::error::ReportError;
use crate::text::escape;
use figure::Figure;
use std::fmt::Write;
use std::path::Path;

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
.wide + .wide { margin-top: 1.2rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .25rem .7rem; border-bottom: 1px solid #ddd; white-space: nowrap }
th { border-bottom: 2px solid #999; font-weight: 600 }
th:first-child, td:first-child { text-align: left; white-space: normal; padding-left: 0 }
figure { margin: 1.4rem 0; overflow-x: auto }
figure svg { display: block; width: 100%; min-width: 38rem; height: auto }
figcaption { color: #444; font-size: .95rem; margin-top: .3rem; overflow-wrap: anywhere }
pre { overflow-x: auto; font-size: .85rem }
footer { margin-top: 3rem; color: #666; font-size: .9rem }
@media screen and (max-width: 40rem) { body { padding: 1rem .7rem 3rem } table { font-size: .8rem }
  th, td { padding: .2rem .3rem; white-space: normal } td:first-child { overflow-wrap: break-word }
  dl { grid-template-columns: 1fr; gap: 0 } dd { margin: 0 0 .4rem } pre { font-size: .7rem }
  figure svg { min-width: 30rem } }
@page { margin: 15mm }
@media print { body { max-width: none; padding: 0; font-size: 11pt } figure, tr { break-inside: avoid }
  figure svg { min-width: 0 }
  h2 { break-after: avoid } ul.notes { background: none } }
";

/// Draws a correlator with its fit, as in the pages, and returns the SVG text.
///
/// # Errors
/// A [`ReportError`] if the drawing library fails.
pub fn correlator_svg(found: &HadronFit) -> Result<String, ReportError> {
    let fit = found.fit.as_ref().ok();
    let fit = fit.map(|fit| (fit.states, &fit.fit.best.minimum.parameters[..], fit.fit.best.window));
    Ok(fitted::correlator_figure(&found.name, &found.correlator, fit, "")?.svg)
}

/// Returns the beginning of a page with the title `name`.
fn begin(name: &str) -> String {
    let name = escape(name);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    )
}

/// Content of a page with regard to runs of `ferrite rhmc`, which determines its legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RunsOnPage {
    /// The page has no runs.
    None,
    /// The page has runs, all without a condensate.
    Plain,
    /// The page has runs, of which at least one has a condensate.
    WithCondensates,
}

/// Appends the end of a page: the footer with the name `program`, and explanations if the page has runs.
fn end(page: &mut String, program: &str, runs: RunsOnPage) {
    *page += "<footer>\n";
    match runs {
        RunsOnPage::None => {}
        RunsOnPage::Plain => *page += &format!("{LEGEND}{LEGEND_END}"),
        RunsOnPage::WithCondensates => *page += &format!("{LEGEND}{CONDENSATES}{LEGEND_END}"),
    }
    let _ = write!(page, "<p>Made by {}.</p>\n</footer>\n</body>\n</html>\n", escape(program));
}

/// Escapes the text of a table cell. In a narrow column, lines may break before `±`, but neither between `±` and the error, nor before a
/// mark `*`, nor in an exponent.
fn cell(text: &str) -> String {
    let mut joined = text.replace(" ± ", " ±\u{a0}").replace(" *", "\u{a0}*");
    for digit in '0'..='9' {
        joined = joined.replace(&format!("{digit}e-"), &format!("{digit}e\u{2212}"));
    }
    escape(&joined)
}

/// Converts lines with columns for a terminal to a sentence.
fn sentence(lines: &str) -> String {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    escape(&format!("{}.", lines.lines().map(words).collect::<Vec<_>>().join("; ")))
}

/// Appends the heading of a section to a page.
fn heading(page: &mut String, name: &str) {
    let _ = writeln!(page, "<h2>{}</h2>", escape(name));
}

/// Appends a table of names and values to a page.
fn facts<'f>(page: &mut String, facts: impl Iterator<Item = (&'f str, &'f str)>) {
    *page += "<dl>\n";
    for (what, value) in facts {
        let _ = writeln!(page, "<dt>{}</dt><dd>{}</dd>", escape(what), escape(value));
    }
    *page += "</dl>\n";
}

/// Appends notes on problems that need attention, if there are any.
fn notes(page: &mut String, notes: &[String]) {
    if !notes.is_empty() {
        *page += "<ul class=\"notes\">\n";
        for note in notes {
            let _ = writeln!(page, "<li>{}</li>", escape(note));
        }
        *page += "</ul>\n";
    }
}

/// Appends a figure to a page.
fn put(page: &mut String, figure: &Figure) {
    let caption = escape(&figure.caption);
    let _ = writeln!(page, "<figure>\n{}<figcaption>{caption}</figcaption>\n</figure>", figure.svg);
}

/// Returns the name of a folder, also if the path is `.`.
pub fn folder_name(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.into());
    whole.file_name().map_or_else(|| folder.display().to_string(), |name| name.to_string_lossy().into_owned())
}

const LEGEND: &str = "\
<p>Errors are one standard deviation of the mean, √(2 τ<sub>int</sub> σ² / n). τ<sub>int</sub> is the integrated
autocorrelation time, ½ + Σ ρ(t) up to the first t ≥ 6 τ<sub>int</sub> (Madras and Sokal 1988), in steps from one value to
the next; ½ means independent values. Bands around running averages use the τ<sub>int</sub> of the whole series. Plaquettes and
rectangles are Re tr / 3, the Polyakov loop is the mean over space of tr / 3";
const CONDENSATES: &str = ", condensates are tr M⁻¹ per site of one
staggered field, M = m + D/2";
const LEGEND_END: &str = "; docs/output.md has all definitions.</p>
";
