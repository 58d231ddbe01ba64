//! Plots of several quantities with errors at named positions, in panels one below the other.
use super::panel::of_curve;
use super::{Area, DrawError, below_titles, log, range};
use plotters::prelude::*;

/// A panel with values of one quantity and their errors.
pub struct ErrorBarPanel {
    /// Name of the vertical axis.
    pub axis: String,
    /// Whether the vertical axis is logarithmic. Numbers at or below 0 are left out on such an axis.
    pub logarithmic: bool,
    /// Mean and error of the quantity at each position; either may be NaN.
    pub at: Vec<[f64; 2]>,
    /// Range of the vertical axis; `None` to show all values. Points outside of the range are left out; error bars are clipped at its
    /// ends.
    pub range: Option<[f64; 2]>,
}

/// Plot of several panels with a common horizontal axis.
pub struct ErrorBarPlot {
    /// Title above the picture.
    pub title: String,
    /// Subtitle below the title.
    pub subtitle: String,
    /// Names of the positions on the horizontal axis.
    pub places: Vec<String>,
    /// Name of the horizontal axis; `None` for no name.
    pub horizontal: Option<String>,
    /// Panels of the plot, from top to bottom.
    pub panels: Vec<ErrorBarPanel>,
}

/// Returns the lower end, the value and the upper end of an error bar as they are drawn, or `None` if the value cannot be drawn.
fn ends(panel: &ErrorBarPanel, [mean, error]: [f64; 2]) -> Option<[f64; 3]> {
    let error = if error.is_finite() { error } else { 0.0 };
    if !panel.logarithmic {
        return Some([mean - error, mean, mean + error]).filter(|_| mean.is_finite());
    }
    let (middle, upper) = (log(mean)?, log(mean + error)?);
    // If the bar extends below 0, its logarithm is drawn with equal lengths downwards and upwards.
    Some([log(mean - error).unwrap_or(2.0 * middle - upper), middle, upper])
}

/// Draws the plot, and returns the text of the SVG file.
///
/// # Errors
/// The error of the drawing library, if it fails.
pub fn svg(plot: &ErrorBarPlot) -> Result<String, DrawError> {
    let mut svg = String::new();
    {
        let count = plot.panels.len();
        let root = SVGBackend::with_string(&mut svg, (960, 80 + 260 * count as u32)).into_drawing_area();
        let below = below_titles(&root, &plot.title, &plot.subtitle)?;
        for (number, (area, panel)) in below.split_evenly((count, 1)).iter().zip(&plot.panels).enumerate() {
            draw(area, plot, panel, of_curve(number))?;
        }
        root.present()?;
    }
    Ok(svg)
}

fn draw(area: &Area, plot: &ErrorBarPlot, panel: &ErrorBarPanel, colour: RGBColor) -> Result<(), DrawError> {
    let mut points: Vec<(f64, [f64; 3])> =
        panel.at.iter().enumerate().filter_map(|(k, at)| Some((k as f64, ends(panel, *at)?))).collect();
    let vertical = match panel.range {
        Some(ends) => range(ends.into_iter()),
        None => range(points.iter().flat_map(|(_, ends)| *ends)),
    };
    points.retain(|(_, [_, middle, _])| vertical.contains(middle));
    for (_, [low, _, high]) in &mut points {
        (*low, *high) = (low.max(vertical.start), high.min(vertical.end));
    }
    let below = if plot.horizontal.is_some() { 46 } else { 28 };
    let places = plot.places.len().max(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(below)
        .y_label_area_size(96)
        .build_cartesian_2d(-0.5..places - 0.5, vertical)?;
    let name = |x: &f64| {
        let near = x.round();
        let place = ((x - near).abs() < 1e-6 && near >= 0.0).then(|| plot.places.get(near as usize)).flatten();
        place.cloned().unwrap_or_default()
    };
    let power = |y: &f64| format!("{:.1e}", 10f64.powf(*y));
    let mut mesh = chart.configure_mesh();
    mesh.max_light_lines(1).light_line_style(WHITE).label_style(("sans-serif", 14)).disable_x_mesh();
    mesh.y_desc(panel.axis.as_str()).y_labels(6);
    mesh.x_labels(2 * plot.places.len() + 2).x_label_formatter(&name);
    if let Some(name) = &plot.horizontal {
        mesh.x_desc(name.as_str());
    }
    if panel.logarithmic {
        mesh.y_label_formatter(&power);
    }
    mesh.draw()?;
    let bars = points
        .iter()
        .map(|(x, [low, middle, high])| ErrorBar::new_vertical(*x, *low, *middle, *high, colour.filled(), 12));
    chart.draw_series(bars)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_their_names() {
        let values = |axis: &str, logarithmic| ErrorBarPanel {
            axis: axis.into(),
            logarithmic,
            at: vec![[1.0, 0.1], [2e-3, f64::NAN], [0.5, 0.7], [f64::NAN, 1.0]],
            range: None,
        };
        let plot = ErrorBarPlot {
            title: "title".into(),
            subtitle: "subtitle".into(),
            places: ["alpha", "beta", "gamma", "delta"].map(String::from).into(),
            horizontal: Some("place".into()),
            panels: vec![values("plain", false), values("powers", true)],
        };
        let svg = super::svg(&plot).unwrap();
        for word in ["title", "subtitle", "alpha", "beta", "gamma", "delta", "plain", "powers", ">\nplace\n<"] {
            assert!(svg.contains(word), "{word}");
        }
        // Three values in each of two panels.
        assert_eq!(svg.matches("<circle").count(), 6);
        // Only what is in the range is drawn.
        let near = ErrorBarPanel { range: Some([0.4, 0.6]), ..values("near", false) };
        let svg = super::svg(&ErrorBarPlot { panels: vec![near], ..plot }).unwrap();
        assert_eq!(svg.matches("<circle").count(), 1);
    }
}
