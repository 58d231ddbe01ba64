//! Section on timelines: activities of the streams of each process in time.
use crate::page;
use crate::text::{count, escape};
use ferrite_records::bench::TimelineEvent;
use ferrite_records::read::read_list_leniently;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Maximum number of rows, and maximum number of spans in all rows, that are drawn.
const MOST: [usize; 2] = [144, 20_000];
/// Width of the picture, in pixels.
const WIDTH: f64 = 960.0;
const NAMES: f64 = 130.0;
const ROW: f64 = 22.0;
const SCALE: f64 = 34.0;

/// A span of a row, in microseconds.
struct TraceSpan {
    name: String,
    begin: f64,
    length: f64,
}

/// Section of a page on a file of `ferrite bench halo --trace`, which has events in Chrome's trace format.
pub struct TimelineSection {
    /// Spans by process and stream.
    rows: BTreeMap<(u64, u64), Vec<TraceSpan>>,
    names: BTreeMap<(u64, u64), String>,
    left_out: usize,
}

impl TimelineSection {
    /// Returns whether a JSON object is a trace in Chrome's format.
    pub fn is_one(object: &Value) -> bool {
        object["traceEvents"].is_array()
    }
    /// Reads the complete events of a trace.
    pub fn read(object: &Value) -> Result<Self, String> {
        let (mut rows, mut names, mut left_out, mut count) = (BTreeMap::new(), BTreeMap::new(), 0, 0);
        let events: Vec<TimelineEvent> = read_list_leniently(&object["traceEvents"]).unwrap_or_default();
        for TimelineEvent { name, ph, pid, tid, ts, dur, args } in events {
            let row = (pid, tid.unwrap_or(0));
            match (ph.as_str(), ts, dur) {
                ("M", ..) if name == "thread_name" => {
                    names.insert(row, args.unwrap_or_default().name);
                }
                ("X", Some(begin), Some(length)) => {
                    let there = rows.contains_key(&row) || rows.len() < MOST[0];
                    let sound = begin.abs() < 1e15 && (0.0..1e15).contains(&length);
                    if !(sound && there && count < MOST[1]) {
                        left_out += 1;
                        continue;
                    }
                    count += 1;
                    rows.entry(row).or_insert_with(Vec::new).push(TraceSpan { name, begin, length });
                }
                _ => {}
            }
        }
        if rows.is_empty() {
            return Err("is a trace without complete events".into());
        }
        Ok(TimelineSection { rows, names, left_out })
    }
    /// Returns a sentence that summarises the section.
    pub fn sentence(&self) -> String {
        let processes = self.rows.keys().map(|(process, _)| process).collect::<std::collections::BTreeSet<_>>().len();
        let spans: usize = self.rows.values().map(Vec::len).sum();
        let [spans, rows, processes] =
            [(spans, "span"), (self.rows.len(), "stream"), (processes, "process")].map(|(n, word)| count(n, word));
        format!("timeline of {spans} in {rows} of {processes}")
    }
    /// Appends the section to a page with the heading `title`.
    pub fn put(&self, html: &mut String, title: &str) {
        page::heading(html, &format!("Timeline: {title}"));
        let _ = write!(html, "<figure>\n{}<figcaption>", self.svg());
        *html += "Activity of each stream of each process, in microseconds. Point at a bar to see its name.";
        if self.left_out > 0 {
            let _ = write!(html, " Left out: {}.", count(self.left_out, "span"));
        }
        *html += "</figcaption>\n</figure>\n";
    }
    fn svg(&self) -> String {
        let spans = || self.rows.values().flatten();
        let begin = spans().map(|span| span.begin).fold(f64::INFINITY, f64::min);
        let end = spans().map(|span| span.begin + span.length).fold(f64::NEG_INFINITY, f64::max);
        let length = (end - begin).max(1e-3);
        let across = |time: f64| NAMES + (WIDTH - NAMES - 10.0) * (time - begin) / length;
        let bottom = ROW * self.rows.len() as f64;
        let height = bottom + SCALE + 26.0;
        let mut svg = format!(
            "<svg role=\"img\" aria-label=\"Timeline\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
             xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"12\">\n"
        );
        let step = nice(length / 8.0);
        for tick in 0..=(length / step) as usize {
            let (time, x) = (step * tick as f64, across(begin + step * tick as f64));
            let _ = writeln!(svg, "<line x1=\"{x:.2}\" y1=\"0\" x2=\"{x:.2}\" y2=\"{bottom}\" stroke=\"#ddd\"/>");
            let y = bottom + 16.0;
            let _ = writeln!(svg, "<text x=\"{x:.2}\" y=\"{y}\" text-anchor=\"middle\">{}</text>", short(time));
        }
        for (number, (row, spans)) in self.rows.iter().enumerate() {
            let y = ROW * number as f64;
            let stream = self.names.get(row).cloned().unwrap_or_else(|| format!("stream {}", row.1));
            let name = escape(&format!("rank {}, {stream}", row.0));
            let _ = writeln!(svg, "<text x=\"4\" y=\"{:.1}\">{name}</text>", y + 15.0);
            for span in spans {
                // Spans that are too short to be visible are drawn as lines.
                let x = across(span.begin);
                let width = (across(span.begin + span.length) - x).max(0.7);
                let about =
                    escape(&format!("{}: {} µs from {} on", span.name, short(span.length), short(span.begin - begin)));
                let _ = writeln!(
                    svg,
                    "<rect x=\"{x:.2}\" y=\"{:.1}\" width=\"{width:.2}\" height=\"{}\" fill=\"{}\"><title>{about}</title></rect>",
                    y + 3.0,
                    ROW - 6.0,
                    colour(&span.name)
                );
            }
        }
        let y = bottom + SCALE;
        let mut x = NAMES;
        for (name, colour) in COLOURS {
            let _ = writeln!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>");
            let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">{name}</text>", x + 16.0, y + 11.0);
            x += 40.0 + 7.0 * name.len() as f64;
        }
        svg + "</svg>\n"
    }
}

/// Colours of activities, by the beginning of their names, as in other parts of a report.
const COLOURS: [(&str, &str); 6] = [
    ("pack", "#e69f00"),
    ("interior", "#0072b2"),
    ("exterior", "#009e73"),
    ("copy", "#56b4e9"),
    ("message", "#d55e00"),
    ("other", "#969696"),
];

fn colour(name: &str) -> &'static str {
    let known = COLOURS.iter().find(|(kind, _)| name.starts_with(kind));
    known.unwrap_or(&COLOURS[COLOURS.len() - 1]).1
}

/// Returns the smallest number not below x that is 1, 2 or 5 times a power of ten.
fn nice(x: f64) -> f64 {
    let power = 10f64.powf(x.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= x).unwrap_or(10.0 * power)
}

/// Formats a time with as many digits as it needs.
fn short(time: f64) -> String {
    if time < 10.0 { format!("{time:.2}") } else { format!("{time:.0}") }
}
