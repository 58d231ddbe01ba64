//! Plots of curves with a legend.
use super::{Area, DrawError, below_titles, panel, range};
use plotters::prelude::*;

/// Maximum number of points of a curve for which the points are marked.
const FEW: usize = 16;

/// Style and axis of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveStyle {
    /// A line on the left axis, whose points are marked if they are few.
    Line,
    /// A dashed line on the right axis.
    DashedRight,
    /// Separate points on the left axis.
    Marks,
}

/// A curve of a [`LinePlot`], with its points and style.
pub struct PlottedCurve {
    /// Name of the curve in the legend.
    pub name: String,
    /// Points of the curve, in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
    /// Style of the curve.
    pub style: CurveStyle,
}

/// Plot of curves with a legend.
pub struct LinePlot {
    /// Title above the picture.
    pub title: String,
    /// Subtitle below the title.
    pub subtitle: String,
    /// Names of the horizontal, the left and the right axis. The right axis is drawn only if a curve has the style
    /// [`CurveStyle::DashedRight`].
    pub axes: [String; 3],
    /// Whether the horizontal axis is logarithmic with a tick for each doubling, and whether the left axis is logarithmic with a tick for
    /// each power of ten. Numbers at or below 0 are left out on logarithmic axes.
    pub logarithmic: [bool; 2],
    /// Curves of the plot.
    pub curves: Vec<PlottedCurve>,
}

/// Formats a number on an axis with doublings; empty if it is between them.
fn doublings(x: f64) -> String {
    if (x - x.round()).abs() < 1e-6 { format!("{:.0}", x.exp2()) } else { String::new() }
}

/// Formats a number on an axis with powers of ten, with about three digits.
fn powers(y: f64) -> String {
    let number = 10f64.powf(y);
    let digits = (2 - y.floor() as i32).clamp(0, 6) as usize;
    format!("{number:.digits$}")
}

/// A curve with its points as they are drawn, which are logarithms on logarithmic axes.
struct DrawnCurve<'a> {
    curve: &'a PlottedCurve,
    points: Vec<(f64, f64)>,
}

impl<'a> DrawnCurve<'a> {
    fn new(curve: &'a PlottedCurve, [horizontal, vertical]: [bool; 2]) -> Self {
        let on_the_right = curve.style == CurveStyle::DashedRight;
        let place = |&(x, y): &(f64, f64)| {
            let scaled = (if horizontal { x.log2() } else { x }, if vertical && !on_the_right { y.log10() } else { y });
            Some(scaled).filter(|(x, y)| x.is_finite() && y.is_finite())
        };
        DrawnCurve { curve, points: curve.points.iter().filter_map(place).collect() }
    }
    fn is_on_the_right(&self) -> bool {
        self.curve.style == CurveStyle::DashedRight
    }
    fn falls(&self) -> bool {
        self.points.first().zip(self.points.last()).is_some_and(|(a, b)| a.1 > b.1)
    }
}

/// Draws the plot, and returns the text of the SVG file.
///
/// # Errors
/// The error of the drawing library, if it fails.
pub fn svg(plot: &LinePlot) -> Result<String, DrawError> {
    let curves: Vec<DrawnCurve> = plot.curves.iter().map(|curve| DrawnCurve::new(curve, plot.logarithmic)).collect();
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (960, 640)).into_drawing_area();
        let below = below_titles(&root, &plot.title, &plot.subtitle)?;
        draw(&below, plot, &curves)?;
        root.present()?;
    }
    Ok(svg)
}

fn draw(area: &Area, plot: &LinePlot, curves: &[DrawnCurve]) -> Result<(), DrawError> {
    let [horizontal, vertical] = plot.logarithmic;
    let points =
        |right: bool| curves.iter().filter(move |curve| curve.is_on_the_right() == right).flat_map(|c| &c.points);
    let x = range(curves.iter().flat_map(|curve| &curve.points).map(|p| p.0));
    let doubled = (x.end - x.start).ceil().clamp(2.0, 24.0) as usize + 1;
    let right = points(true).next().is_some();
    let mut chart = ChartBuilder::on(area)
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
        // Every doubling has a tick, or every second one if there are many.
        mesh.x_labels(doubled).x_label_formatter(&of_x);
    }
    if vertical {
        mesh.y_label_formatter(&of_y);
    }
    mesh.draw()?;
    if right {
        chart.configure_secondary_axes().y_desc(plot.axes[2].as_str()).label_style(("sans-serif", 14)).draw()?;
    }
    for (j, DrawnCurve { curve, points }) in curves.iter().enumerate() {
        let (colour, points) = (panel::of_curve(j), points.iter().copied());
        let legend = move |(x, y): (i32, i32)| PathElement::new(vec![(x, y), (x + 24, y)], colour.stroke_width(2));
        let mark = move |at: (i32, i32)| Circle::new((at.0 + 12, at.1), 5, colour.filled());
        match curve.style {
            CurveStyle::Marks => {
                let marks = points.map(|at| Circle::new(at, 5, colour.filled()));
                chart.draw_series(marks)?.label(&curve.name).legend(mark);
            }
            CurveStyle::DashedRight => {
                let dashes = DashedLineSeries::new(points, 8, 5, colour.stroke_width(2));
                chart.draw_secondary_series(dashes)?.label(&curve.name).legend(legend);
            }
            CurveStyle::Line => {
                if points.len() <= FEW {
                    chart.draw_series(points.clone().map(|at| Circle::new(at, 3, colour.filled())))?;
                }
                chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?.label(&curve.name).legend(legend);
            }
        }
    }
    chart
        .configure_series_labels()
        .position(legend_position(vertical, curves))
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 14))
        .draw()?;
    Ok(())
}

/// Returns the position of the legend: the upper left corner on logarithmic axes, the lower left corner if all curves on the left axis
/// fall, otherwise the middle of the right side.
fn legend_position(logarithmic: bool, curves: &[DrawnCurve]) -> SeriesLabelPosition {
    if logarithmic {
        SeriesLabelPosition::UpperLeft
    } else if curves.iter().all(|curve| !curve.is_on_the_right() && curve.falls()) {
        SeriesLabelPosition::LowerLeft
    } else {
        SeriesLabelPosition::MiddleRight
    }
}
