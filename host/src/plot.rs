//! Plots as SVG.
pub mod compared;
pub mod panel;

use crate::cli::target;
use plotters::prelude::*;

use std::path::Path;

/// What is drawn.
pub struct Convergence<'a> {
    /// Lattice and operator.
    pub title: String,
    /// Solver and precision.
    pub subtitle: String,
    /// Iteration and relative residual, by right-hand side.
    pub history: Vec<Vec<(usize, f64)>>,
    /// Iterations at which true residuals were computed.
    pub updates: &'a [(usize, Vec<f64>)],
    /// Asked residual.
    pub tol: f64,
}

/// Draws to a file that appears whole or not at all.
pub fn write(path: &Path, plot: &Convergence) -> Result<(), String> {
    save(path, draw(plot))
}

/// Curves of so many points show them.
const FEW: usize = 16;

/// A curve of [`Lines`].
pub struct Line {
    /// Name, for the legend.
    pub name: String,
    /// Points, in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
    /// Dashed, and measured on the right axis.
    pub dashed: bool,
    /// Not joined, but marked; on the left axis.
    pub marks: bool,
}

/// Curves with a legend.
pub struct Lines {
    /// Above the picture.
    pub title: String,
    /// Below the title.
    pub subtitle: String,
    /// Names of the horizontal, the left and the right axis; without a dashed line there is no right one.
    pub axes: [String; 3],
    /// Whether the horizontal axis shows doublings, and the left one powers of ten; numbers that are not above 0 are left
    /// out there.
    pub logarithmic: [bool; 2],
    /// The curves.
    pub lines: Vec<Line>,
}

/// Draws to a file that appears whole or not at all.
pub fn write_lines(path: &Path, plot: &Lines) -> Result<(), String> {
    save(path, draw_lines(plot))
}

/// The picture as an SVG element for a page.
pub fn lines_svg(plot: &Lines) -> Result<String, String> {
    draw_lines(plot).map_err(|why| format!("{} cannot be drawn: {why}", plot.title))
}

/// A text as it may stand in HTML and SVG, between tags and within quotes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            // Not allowed in XML, whatever the spelling.
            c if c.is_control() && !matches!(c, '\n' | '\t') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

fn save(path: &Path, drawn: Result<String, Box<dyn std::error::Error>>) -> Result<(), String> {
    let svg = drawn.map_err(|why| format!("{}: cannot be drawn: {why}", path.display()))?;
    target::write_text(path, &svg)
}

/// From the smallest to the largest number, with some room.
fn range(numbers: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (low, high) = numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    if low > high {
        return 0.0..1.0;
    }
    let room = if high > low { 0.05 * (high - low) } else { 0.5 };
    low - room..high + room
}

/// A number on an axis that shows doublings; nothing between them.
fn doublings(x: f64) -> String {
    if (x - x.round()).abs() < 1e-6 { format!("{:.0}", x.exp2()) } else { String::new() }
}

/// A number on an axis that shows powers of ten, with about three digits.
fn powers(y: f64) -> String {
    let number = 10f64.powf(y);
    let digits = (2 - y.floor() as i32).clamp(0, 6) as usize;
    format!("{number:.digits$}")
}

fn draw_lines(plot: &Lines) -> Result<String, Box<dyn std::error::Error>> {
    let [horizontal, vertical] = plot.logarithmic;
    // To where it is drawn.
    let place = |(x, y): (f64, f64), on_the_right: bool| {
        let scaled = (if horizontal { x.log2() } else { x }, if vertical && !on_the_right { y.log10() } else { y });
        Some(scaled).filter(|(x, y)| x.is_finite() && y.is_finite())
    };
    let points = |line: &Line| -> Vec<(f64, f64)> {
        line.points.iter().filter_map(|point| place(*point, line.dashed)).collect()
    };
    let lines: Vec<(&Line, Vec<(f64, f64)>)> = plot.lines.iter().map(|line| (line, points(line))).collect();
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (960, 640)).into_drawing_area();
        root.fill(&WHITE)?;
        let (above, below) = root.split_vertically(70);
        let text = |size: f64| TextStyle::from(("sans-serif", size).into_font()).color(&BLACK);
        above.draw(&Text::new(plot.title.as_str(), (80, 14), text(22.0)))?;
        above.draw(&Text::new(plot.subtitle.as_str(), (80, 44), text(16.0)))?;
        let points = |dashed: bool| lines.iter().filter(move |(line, _)| line.dashed == dashed).flat_map(|(_, p)| p);
        let x = range(lines.iter().flat_map(|(_, points)| points).map(|p| p.0));
        let doubled = (x.end - x.start).ceil().clamp(2.0, 24.0) as usize + 1;
        let right = points(true).next().is_some();
        let mut chart = ChartBuilder::on(&below)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .right_y_label_area_size(if right { 56 } else { 0 })
            .build_cartesian_2d(x.clone(), range(points(false).map(|p| p.1)))?
            .set_secondary_coord(x, range(points(true).map(|p| p.1)));
        let mut mesh = chart.configure_mesh();
        mesh.max_light_lines(1).light_line_style(WHITE).label_style(("sans-serif", 14));
        mesh.x_desc(plot.axes[0].as_str()).y_desc(plot.axes[1].as_str());
        let (of_x, of_y) = (|x: &f64| doublings(*x), |y: &f64| powers(*y));
        if horizontal {
            // One for each doubling; where there are many, for every other.
            mesh.x_labels(doubled).x_label_formatter(&of_x);
        }
        if vertical {
            mesh.y_label_formatter(&of_y);
        }
        mesh.draw()?;
        if right {
            chart.configure_secondary_axes().y_desc(plot.axes[2].as_str()).label_style(("sans-serif", 14)).draw()?;
        }
        for (j, (line, points)) in lines.iter().enumerate() {
            let (colour, points) = (panel::of_curve(j), points.iter().copied());
            let legend = move |(x, y): (i32, i32)| PathElement::new(vec![(x, y), (x + 24, y)], colour.stroke_width(2));
            let mark = move |at: (i32, i32)| Circle::new((at.0 + 12, at.1), 5, colour.filled());
            if line.marks {
                let marks = points.map(|at| Circle::new(at, 5, colour.filled()));
                chart.draw_series(marks)?.label(&line.name).legend(mark);
            } else if line.dashed {
                let dashes = DashedLineSeries::new(points, 8, 5, colour.stroke_width(2));
                chart.draw_secondary_series(dashes)?.label(&line.name).legend(legend);
            } else {
                if points.len() <= FEW {
                    chart.draw_series(points.clone().map(|at| Circle::new(at, 3, colour.filled())))?;
                }
                chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?.label(&line.name).legend(legend);
            }
        }
        // What grows leaves room above its beginning, what falls below it.
        let falls = |points: &[(f64, f64)]| points.first().zip(points.last()).is_some_and(|(a, b)| a.1 > b.1);
        let place = if vertical {
            SeriesLabelPosition::UpperLeft
        } else if lines.iter().all(|(line, points)| !line.dashed && falls(points)) {
            SeriesLabelPosition::LowerLeft
        } else {
            SeriesLabelPosition::MiddleRight
        };
        chart
            .configure_series_labels()
            .position(place)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .label_font(("sans-serif", 14))
            .draw()?;
        root.present()?;
    }
    Ok(svg)
}

/// log₁₀ of a residual; those that are zero or no numbers cannot be drawn.
fn log(residual: f64) -> Option<f64> {
    Some(residual.log10()).filter(|y| y.is_finite())
}

fn draw(plot: &Convergence) -> Result<String, Box<dyn std::error::Error>> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (960, 600)).into_drawing_area();
        root.fill(&WHITE)?;
        let shown = || plot.history.iter().flatten().filter_map(|(_, residual)| log(*residual));
        let bottom = shown().chain(log(plot.tol)).fold(0.0, f64::min).floor() - 0.5;
        let top = shown().fold(0.0, f64::max).ceil() + 0.2;
        let last = plot.history.iter().flatten().map(|(iteration, _)| *iteration).fold(1, usize::max);
        let (above, below) = root.split_vertically(70);
        let text = |size: f64| TextStyle::from(("sans-serif", size).into_font()).color(&BLACK);
        above.draw(&Text::new(plot.title.as_str(), (80, 14), text(22.0)))?;
        above.draw(&Text::new(plot.subtitle.as_str(), (80, 44), text(16.0)))?;
        let mut chart = ChartBuilder::on(&below)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..last as f64, bottom..top)?;
        chart
            .configure_mesh()
            .max_light_lines(1)
            .light_line_style(WHITE)
            .x_desc("iteration")
            .y_desc("log10 |r| / |b|")
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y:.0}"))
            .label_style(("sans-serif", 14))
            .draw()?;
        if let Some(y) = log(plot.tol) {
            chart.draw_series(LineSeries::new([(0.0, y), (last as f64, y)], BLACK.mix(0.4)))?;
        }
        for (j, history) in plot.history.iter().enumerate() {
            let colour = panel::of_curve(j);
            let points = history.iter().filter_map(|(k, r)| Some((*k as f64, log(*r)?)));
            chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
            let marks = plot.updates.iter().filter_map(|(k, r)| Some((*k as f64, log(*r.get(j)?)?)));
            chart.draw_series(marks.map(|at| Circle::new(at, 4, colour.filled())))?;
        }
        let note = "circles: true residuals b - A x of the even-odd system; grey: asked residual";
        below.draw(&Text::new(note, (90, 4), text(13.0)))?;
        root.present()?;
    }
    Ok(svg)
}
