//! Panels of a report: pictures with lines, bands, marks and bars in given ranges, and a legend above.
use super::{Area, DrawError};
use crate::text::escape;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;

/// Colours that can be distinguished with the common kinds of colour blindness, and as grey tones in print (Okabe and Ito 2008).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotColour {
    /// Light blue, for single values.
    Sky,
    /// Blue, for the most important curve in addition to the average.
    Blue,
    /// Vermilion, for averages, and for rejected trajectories.
    Vermilion,
    /// Green, for a third line.
    Green,
    /// Orange, for error bands.
    Orange,
    /// Purple, for one of many curves.
    Purple,
    /// Grey, for values that do not count in means.
    Grey,
    /// Black, for guide lines.
    Black,
}

impl PlotColour {
    fn rgb(self) -> RGBColor {
        let (r, g, b) = match self {
            PlotColour::Sky => (86, 180, 233),
            PlotColour::Blue => (0, 114, 178),
            PlotColour::Vermilion => (213, 94, 0),
            PlotColour::Green => (0, 158, 115),
            PlotColour::Orange => (230, 159, 0),
            PlotColour::Purple => (204, 121, 167),
            PlotColour::Grey => (150, 150, 150),
            PlotColour::Black => (40, 40, 40),
        };
        RGBColor(r, g, b)
    }
}

/// Returns the colour of one of many curves. The colours are as distinct as possible for all readers, and dark enough for a line on
/// white.
pub(super) fn of_curve(number: usize) -> RGBColor {
    let first = [
        PlotColour::Blue,
        PlotColour::Vermilion,
        PlotColour::Green,
        PlotColour::Orange,
        PlotColour::Sky,
        PlotColour::Purple,
        PlotColour::Black,
    ];
    match first.get(number) {
        Some(colour) => colour.rgb(),
        None => {
            let (r, g, b) = Palette99::COLORS[number % Palette99::COLORS.len()];
            RGBColor(r, g, b)
        }
    }
}

/// Shape of a layer; each layer has one entry in the legend.
pub enum LayerShape {
    /// Line through points, clipped at the edges of the picture and interrupted at points that are not finite.
    Line {
        /// Points in the order in which they are joined.
        points: Vec<(f64, f64)>,
        /// Width in pixels.
        width: u32,
        /// Whether the line is dashed.
        dashed: bool,
    },
    /// Area between two lines, given by x, the lower end and the upper end.
    Band(Vec<(f64, f64, f64)>),
    /// Circles; circles outside of the picture are drawn at its edge.
    Dots(Vec<(f64, f64)>),
    /// Crosses; crosses outside of the picture are drawn at its edge.
    Crosses(Vec<(f64, f64)>),
    /// Bars of equal width that stand on 0, given by the left end of the first bar, the width, and the heights.
    Bars(f64, f64, Vec<f64>),
}

/// A layer of a panel: a shape with its colour and name.
pub struct Layer {
    /// Name in the legend; a layer with an empty name is left out of it.
    pub name: String,
    /// Colour of the layer.
    pub colour: PlotColour,
    /// Shape of the layer.
    pub shape: LayerShape,
}

/// Picture for a page, drawn from layers.
pub struct Panel {
    /// Description of the picture for readers who cannot see it.
    pub about: String,
    /// Names of the horizontal and the vertical axis.
    pub axes: [String; 2],
    /// Ranges of the horizontal and the vertical axis.
    pub ranges: [Range<f64>; 2],
    /// Whether the horizontal axis shows whole numbers.
    pub counts: bool,
    /// Layers from the lowest to the topmost.
    pub layers: Vec<Layer>,
}

type Plane<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Number of drawing units for each pixel of the page. The drawing library uses whole units only, and curves in whole pixels would not be
/// smooth.
const UNITS: i32 = 4;
/// Width and height of a panel, in pixels.
const SIZE: [i32; 2] = [960, 340];
const LEGEND: i32 = 36 * UNITS;
/// Font size for the drawing library, which takes it as the height of a line: 1.24 times the size of letters.
const FONT: i32 = 18 * UNITS;
/// Margins in drawing units, for labels of the vertical axis on the left, and at the right end of the picture.
const SIDES: [i32; 2] = [98 * UNITS, 16 * UNITS];
const TICKS: [usize; 2] = [11, 7];

/// Draws the panel as an SVG element that scales with the page and has a description for screen readers.
///
/// # Errors
/// The error of the drawing library, if it fails.
pub fn svg(panel: &Panel) -> Result<String, DrawError> {
    let mut svg = String::new();
    let whole = SIZE.map(|pixels| (pixels * UNITS) as u32);
    let whole = (whole[0], whole[1]);
    {
        let root = SVGBackend::with_string(&mut svg, whole).into_drawing_area();
        root.fill(&WHITE)?;
        let (above, below) = root.split_vertically(LEGEND);
        legend(&above, &panel.layers)?;
        let ranges = [sound(&panel.ranges[0]), sound(&panel.ranges[1])];
        let [x, y] = ranges.clone();
        let (across, upwards) = (label(&x, TICKS[0], panel.counts), label(&y, TICKS[1], false));
        let mut chart = ChartBuilder::on(&below)
            .margin_left(6 * UNITS)
            .margin_right(SIDES[1])
            .margin_top(4 * UNITS)
            .margin_bottom(6 * UNITS)
            .x_label_area_size(54 * UNITS)
            .y_label_area_size(SIDES[0])
            .build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .max_light_lines(1)
            .light_line_style(WHITE)
            .bold_line_style(BLACK.mix(0.12).stroke_width(UNITS as u32))
            .axis_style(BLACK.mix(0.6).stroke_width(UNITS as u32))
            .set_all_tick_mark_size(5 * UNITS)
            .x_labels(TICKS[0])
            .y_labels(TICKS[1])
            .x_label_formatter(&across)
            .y_label_formatter(&upwards)
            .x_desc(panel.axes[0].as_str())
            .y_desc(panel.axes[1].as_str())
            .label_style(("sans-serif", FONT))
            .draw()?;
        for layer in &panel.layers {
            draw(&mut chart, layer, &ranges)?;
        }
        root.present()?;
    }
    // The drawing library does not write the description for screen readers, so it is added here.
    let about = format!("<svg role=\"img\" aria-label=\"{}\" ", escape(&panel.about));
    let shown = format!("width=\"{}\" height=\"{}\"", SIZE[0], SIZE[1]);
    let drawn = format!("width=\"{}\" height=\"{}\"", whole.0, whole.1);
    Ok(svg.replacen("<svg ", &about, 1).replacen(&drawn, &shown, 1))
}

/// Returns a range with distinct ticks. The drawing library would search for ticks forever if numbers are too large to be subtracted, or
/// too close to differ.
fn sound(range: &Range<f64>) -> Range<f64> {
    let ends = [range.start, range.end].map(|x| x.clamp(-1e100, 1e100));
    if ends[0].is_nan() || ends[1].is_nan() || ends[0] > ends[1] {
        return 0.0..1.0;
    }
    let least = (1e-9 * ends[0].abs().max(ends[1].abs())).max(1e-290);
    if ends[1] - ends[0] < least { ends[0] - least..ends[1] + least } else { ends[0]..ends[1] }
}

/// Draws the samples and names of a legend in one row. Letters are assumed to have average width; after a wider name the gap to the next
/// one is smaller.
fn legend(area: &Area, layers: &[Layer]) -> Result<(), DrawError> {
    let text = TextStyle::from(("sans-serif", FONT).into_font()).color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
    let (mut x, y) = (SIDES[0] + 6 * UNITS, LEGEND / 2);
    let sample = 24 * UNITS;
    for layer in layers.iter().filter(|layer| !layer.name.is_empty()) {
        let colour = layer.colour.rgb();
        let (middle, high) = (x + sample / 2, 6 * UNITS);
        match &layer.shape {
            LayerShape::Line { width, dashed, .. } => {
                let ends: &[(i32, i32)] = if *dashed { &[(0, 9), (15, 24)] } else { &[(0, 24)] };
                for (from, to) in ends {
                    let ends = vec![(x + from * UNITS, y), (x + to * UNITS, y)];
                    area.draw(&PathElement::new(ends, stroke(colour, *width.max(&2))))?;
                }
            }
            LayerShape::Band(_) => area.draw(&Rectangle::new([(x, y - high), (x + sample, y + high)], band(colour)))?,
            LayerShape::Bars(..) => {
                area.draw(&Rectangle::new([(x, y - high), (x + sample, y + high)], colour.filled()))?
            }
            LayerShape::Dots(_) => area.draw(&Circle::new((middle, y), 4 * UNITS, colour.filled()))?,
            LayerShape::Crosses(_) => area.draw(&Cross::new((middle, y), 5 * UNITS, stroke(colour, 2)))?,
        }
        area.draw(&Text::new(layer.name.as_str(), (x + 30 * UNITS, y), text.clone()))?;
        x += (30 + 24) * UNITS + layer.name.chars().count() as i32 * FONT / 2;
    }
    Ok(())
}

fn stroke(colour: RGBColor, pixels: u32) -> ShapeStyle {
    colour.stroke_width(pixels * UNITS as u32)
}

fn band(colour: RGBColor) -> ShapeStyle {
    colour.mix(0.45).filled()
}

fn draw(chart: &mut Plane, layer: &Layer, ranges: &[Range<f64>; 2]) -> Result<(), DrawError> {
    let colour = layer.colour.rgb();
    let [x, y] = ranges;
    let inside = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
        let there = points.iter().filter(|p| p.1.is_finite() && x.contains(&p.0));
        there.map(|p| (p.0, p.1.clamp(y.start, y.end))).collect()
    };
    match &layer.shape {
        LayerShape::Line { points, width, dashed } => {
            for piece in pieces(points, y) {
                let style = stroke(colour, *width);
                if *dashed {
                    chart.draw_series(DashedLineSeries::new(piece, 7 * UNITS as u32, 5 * UNITS as u32, style))?;
                } else {
                    chart.draw_series(LineSeries::new(piece, style))?;
                }
            }
        }
        LayerShape::Band(points) => {
            let there = || points.iter().filter(|p| p.1.is_finite() && p.2.is_finite());
            let lower = there().map(|p| (p.0, p.1.clamp(y.start, y.end)));
            let upper = there().rev().map(|p| (p.0, p.2.clamp(y.start, y.end)));
            chart.draw_series([Polygon::new(lower.chain(upper).collect::<Vec<_>>(), band(colour))])?;
        }
        LayerShape::Dots(points) => {
            chart.draw_series(inside(points).into_iter().map(|at| Circle::new(at, 3 * UNITS, colour.filled())))?;
        }
        LayerShape::Crosses(points) => {
            chart.draw_series(inside(points).into_iter().map(|at| Cross::new(at, 4 * UNITS, stroke(colour, 2))))?;
        }
        LayerShape::Bars(low, width, heights) => {
            for (j, height) in heights.iter().enumerate() {
                let ends = [j, j + 1].map(|j| (low + width * j as f64).clamp(x.start, x.end));
                let corners = [(ends[0], 0.0), (ends[1], height.min(y.end))];
                chart.draw_series([
                    Rectangle::new(corners, colour.filled()),
                    Rectangle::new(corners, stroke(WHITE, 1)),
                ])?;
            }
        }
    }
    Ok(())
}

/// Returns the parts of a line that lie within a range.
fn pieces(points: &[(f64, f64)], range: &Range<f64>) -> Vec<Vec<(f64, f64)>> {
    let (mut all, mut piece) = (Vec::new(), Vec::new());
    let within = |y: f64| (range.start..=range.end).contains(&y);
    let mut before: Option<(f64, f64)> = None;
    for &(x, y) in points {
        if !y.is_finite() {
            all.push(std::mem::take(&mut piece));
            before = None;
            continue;
        }
        if let Some((x0, y0)) = before.filter(|(_, y0)| !(within(*y0) && within(y))) {
            // Computes the point at which the line crosses an end of the range.
            let at = |edge: f64| (x0 + (x - x0) * ((edge - y0) / (y - y0)), edge);
            let mut edges: Vec<f64> = [range.start, range.end].into_iter().filter(|e| (y0 < *e) != (y < *e)).collect();
            if y < y0 {
                edges.reverse();
            }
            piece.extend(edges.into_iter().map(at));
            if !within(y) {
                all.push(std::mem::take(&mut piece));
            }
        }
        if within(y) {
            piece.push((x, y));
        }
        before = Some((x, y));
    }
    all.push(piece);
    all.retain(|piece| !piece.is_empty());
    all
}

/// Returns a function that formats numbers on an axis with enough digits to distinguish its ticks.
fn label(range: &Range<f64>, ticks: usize, counts: bool) -> impl Fn(&f64) -> String + use<> {
    let step = ((range.end - range.start) / ticks as f64).abs();
    let largest = range.start.abs().max(range.end.abs());
    let short = !(1e-3..1e6).contains(&largest);
    let of = if short { step / 10f64.powf(largest.log10().floor()) } else { step };
    let digits = (-of.log10()).ceil().clamp(0.0, 12.0) as usize;
    move |x| {
        // Ticks are sums of steps, so a small deviation from zero is a rounding error.
        let x = if x.abs() < 1e-6 * step { 0.0 } else { *x };
        match (counts, short) {
            (true, _) if (x - x.round()).abs() > 1e-6 || x < 0.0 => String::new(),
            (true, _) => format!("{x:.0}"),
            (_, true) if x != 0.0 => format!("{x:.digits$e}"),
            _ => format!("{x:.digits$}").replacen('-', "−", 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_the_edge() {
        let points = [(0.0, 0.5), (1.0, 1.5), (2.0, 0.5), (3.0, f64::NAN), (4.0, -1.0), (5.0, 3.0), (6.0, 2.0)];
        let found = pieces(&points, &(0.0..1.0));
        // Out and in again over the top; through from below: y = −1 + 4 (x − 4).
        let expected = [vec![(0.0, 0.5), (0.5, 1.0)], vec![(1.5, 1.0), (2.0, 0.5)], vec![(4.25, 0.0), (4.5, 1.0)]];
        assert_eq!(found, expected);
        let down = pieces(&[(0.0, 3.0), (1.0, -1.0)], &(0.0..1.0));
        assert_eq!(down, [vec![(0.5, 1.0), (0.75, 0.0)]]);
        assert!(pieces(&[(0.0, 2.0), (1.0, 3.0)], &(0.0..1.0)).is_empty());
        assert_eq!(pieces(&points[..1], &(0.0..1.0)), [vec![(0.0, 0.5)]]);
    }

    #[test]
    fn ranges_without_ticks_are_drawn_too() {
        let close = 1.0..1.0 + f64::EPSILON;
        for range in [-1e308..1e308, 5.0..5.0, close, 1e20..1e20, 0.0..0.0, 0.0..5e-324, f64::NAN..f64::NAN, 2.0..1.0] {
            let points = vec![(range.start, 1.0), (range.end, f64::MAX)];
            let shape = LayerShape::Line { points, width: 1, dashed: true };
            let layers = vec![Layer { name: "line".into(), colour: PlotColour::Sky, shape }];
            let (axes, ranges) = (["x".into(), "y".into()], [range.clone(), range]);
            let panel = Panel { about: String::new(), axes, ranges, counts: false, layers };
            assert!(svg(&panel).unwrap().ends_with("</svg>\n"));
        }
    }

    #[test]
    fn ticks_have_the_digits_they_need() {
        let text = |range: Range<f64>, counts: bool, x: f64| label(&range, 7, counts)(&x);
        assert_eq!(text(0.5500..0.5512, false, 0.5504), "0.5504");
        assert_eq!(text(-3.0..4.0, false, -2.0), "−2");
        assert_eq!(text(-3.0..4.0, false, 1e-17), "0");
        assert_eq!(text(1e-12..4e-12, false, 2e-12), "2.0e-12");
        assert_eq!(text(0.5..1.5, true, 0.8), "");
        assert_eq!(text(0.0..300000.0, true, 100000.0), "100000");
    }

    #[test]
    fn marks_beyond_the_edge_are_at_it_and_names_are_escaped() {
        let layer = |name: &str, shape| Layer { name: name.into(), colour: PlotColour::Blue, shape };
        let panel = Panel {
            about: "a < b & \"c\"".into(),
            axes: ["x".into(), "<y>".into()],
            ranges: [0.0..10.0, 0.0..1.0],
            counts: true,
            layers: vec![
                layer("dots & more", LayerShape::Dots(vec![(5.0, 7.0), (6.0, f64::NAN), (20.0, 0.5)])),
                layer("", LayerShape::Bars(0.0, 1.0, vec![1.0, 0.5])),
            ],
        };
        let drawn = svg(&panel).unwrap();
        assert!(drawn.starts_with("<svg role=\"img\" aria-label=\"a &lt; b &amp; &quot;c&quot;\" "));
        assert!(drawn.contains("dots &amp; more") && drawn.contains("&lt;y&gt;"));
        // One dot, at the top, and one in the legend.
        assert_eq!(drawn.matches("<circle").count(), 2, "{drawn}");
    }
}
