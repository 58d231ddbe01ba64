//! Figures of data with errors and of the functions that are fitted to them.
use super::figure::{Figure, figure, layer, line, roomy};
use crate::error::ReportError;
use crate::plot::panel::{Layer, LayerShape, Panel, PlotColour};
use statistics::fit::correlator::States;
use statistics::fit::least_squares::Model;
use statistics::fit::potential::Cornell;
use statistics::jackknife::JackknifeEstimate;

/// A value with its error, as drawn in a figure.
pub struct ErrorBar {
    /// Position on the horizontal axis.
    pub at: f64,
    /// Lower end of the bar, value, and upper end.
    pub ends: [f64; 3],
    /// Whether a cross marks the value instead of a dot.
    pub crossed: bool,
}

impl ErrorBar {
    /// Returns the error bar of an estimate, or `None` if the estimate has no finite value.
    pub fn of(at: f64, estimate: Option<JackknifeEstimate>) -> Option<Self> {
        let JackknifeEstimate { value, error, .. } = estimate?;
        let error = if error.is_finite() { error } else { 0.0 };
        value.is_finite().then_some(ErrorBar { at, ends: [value - error, value, value + error], crossed: false })
    }
    /// Returns the error bar of log₁₀ |value|, marked by a cross if the value is negative; `None` if the logarithm is not finite.
    pub fn logarithmic(at: f64, estimate: Option<JackknifeEstimate>) -> Option<Self> {
        let log = |x: f64| x.abs().log10();
        let JackknifeEstimate { value, error, .. } = estimate?;
        let middle = log(value);
        // If the bar extends below 0, its logarithm is drawn with equal lengths downwards and upwards.
        let upper = if error.is_finite() { log(value.abs() + error) } else { middle };
        let lower =
            if error.is_finite() && value.abs() > error { log(value.abs() - error) } else { 2.0 * middle - upper };
        middle.is_finite().then_some(ErrorBar { at, ends: [lower, middle, upper], crossed: value < 0.0 })
    }
}

/// A curve that is solid in its window and dashed elsewhere.
pub struct FittedCurve {
    /// Name in the legend.
    pub name: String,
    /// First and last position of the window.
    pub window: [f64; 2],
    /// Points of the whole curve, in order of position.
    pub points: Vec<(f64, f64)>,
}

impl FittedCurve {
    /// Evaluates `f` at positions from `from` to `to`, and returns the curve.
    pub fn of(name: String, window: [f64; 2], [from, to]: [f64; 2], f: impl Fn(f64) -> f64) -> Self {
        const STEPS: usize = 240;
        let place = |k: usize| from + (to - from) * k as f64 / STEPS as f64;
        // Points at both ends of the window make the solid part of the curve cover the whole window.
        let mut places: Vec<f64> = (0..=STEPS).map(place).chain(window).filter(|x| (from..=to).contains(x)).collect();
        places.sort_by(f64::total_cmp);
        FittedCurve { name, window, points: places.into_iter().map(|x| (x, f(x))).collect() }
    }
}

/// Figure with error bars and a fitted curve.
pub struct FittedFigure<'a> {
    /// Description of the figure for readers who cannot see it.
    pub about: String,
    /// Names of the horizontal and the vertical axis.
    pub axes: [String; 2],
    /// Whether the horizontal axis shows whole numbers.
    pub counts: bool,
    /// Values with errors.
    pub bars: &'a [ErrorBar],
    /// Fitted function.
    pub curve: Option<FittedCurve>,
    /// Horizontal lines, each with a name and its position.
    pub levels: Vec<(String, f64)>,
}

impl FittedFigure<'_> {
    /// Draws the figure, and returns it together with `caption`.
    pub fn drawn(self, caption: String) -> Result<Figure, ReportError> {
        let FittedFigure { about, axes, counts, bars, curve, levels } = self;
        let ends = bars.iter().flat_map(|bar| bar.ends).chain(levels.iter().map(|(_, y)| *y)).filter(|y| y.is_finite());
        let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)));
        let places = || bars.iter().map(|bar| bar.at);
        let first = places().reduce(f64::min).unwrap_or(0.0);
        let last = places().reduce(f64::max).unwrap_or(1.0);
        let room = if counts { 0.5 } else { 0.03 * (last - first).max(1e-9) };
        let across = if counts { -0.5..last + 0.5 } else { first - room..last + room };
        let upwards = if low <= high { roomy((low, high)) } else { 0.0..1.0 };
        let mut layers: Vec<Layer> = Vec::new();
        if let Some(FittedCurve { name, window: [from, to], points }) = curve {
            let band = LayerShape::Band(vec![(from, upwards.start, upwards.end), (to, upwards.start, upwards.end)]);
            layers.push(layer("window", PlotColour::Grey, band));
            let beside = |keep: &dyn Fn(f64) -> bool| -> Vec<(f64, f64)> {
                points.iter().filter(|(x, _)| keep(*x)).copied().collect()
            };
            for part in [beside(&|x| x <= from), beside(&|x| x >= to)] {
                layers.push(layer(
                    "",
                    PlotColour::Vermilion,
                    LayerShape::Line { points: part, width: 1, dashed: true },
                ));
            }
            layers.push(layer(&name, PlotColour::Vermilion, line(beside(&|x| (from..=to).contains(&x)), 2)));
        }
        for (name, y) in levels {
            let points = vec![(across.start, y), (across.end, y)];
            layers.push(layer(&name, PlotColour::Black, LayerShape::Line { points, width: 1, dashed: true }));
        }
        layers.extend(bars.iter().map(|ErrorBar { at, ends: [lower, _, upper], .. }| {
            layer("", PlotColour::Blue, line(vec![(*at, *lower), (*at, *upper)], 2))
        }));
        let marks = |crossed: bool| bars.iter().filter(move |b| b.crossed == crossed).map(|b| (b.at, b.ends[1]));
        layers.push(layer("", PlotColour::Blue, LayerShape::Dots(marks(false).collect())));
        layers.push(layer("", PlotColour::Vermilion, LayerShape::Crosses(marks(true).collect())));
        figure(&Panel { about, axes, ranges: [across, upwards], counts, layers }, caption)
    }
}

/// Text between the name of a hadron and its momentum in captions.
pub const MOMENTUM: &str = " with momentum ";

/// Draws log₁₀ |C(t)| with the fitted function, which is solid in its window.
pub fn correlator_figure(
    name: &str,
    correlator: &[Option<JackknifeEstimate>],
    fit: Option<(States, &[f64], [usize; 2])>,
    errors: &str,
) -> Result<Figure, ReportError> {
    let bars: Vec<ErrorBar> =
        correlator.iter().enumerate().filter_map(|(t, c)| ErrorBar::logarithmic(t as f64, *c)).collect();
    let negative = bars.iter().any(|bar| bar.crossed);
    let crosses = if negative { "; crosses are negative values" } else { "" };
    let last = correlator.len().saturating_sub(1) as f64;
    let shown = fit.map(|(_, _, [first, last])| format!("; the fit from t = {first} to {last}")).unwrap_or_default();
    let curve = fit.map(|(states, parameters, window)| {
        let value = |t: f64| states.at(parameters, t).abs().log10();
        FittedCurve::of("fit".into(), window.map(|t| t as f64), [0.0, last], value)
    });
    let figure = FittedFigure {
        about: "Correlator against the time from the source".into(),
        axes: ["t".into(), format!("log₁₀ |C(t)|, {name}")],
        counts: true,
        bars: &bars,
        curve,
        levels: Vec::new(),
    };
    let at = if name.contains(MOMENTUM) { "" } else { " without momentum" };
    let what = format!("Correlator of the {name}{at} against the time from the source; {errors}");
    figure.drawn(format!("{what}{crosses}{shown}."))
}

/// Draws the effective masses of a correlator in which one state alternates in sign; crosses mark the alternating state.
pub fn alternating_figure(
    name: &str,
    [masses, partner]: [&[Option<JackknifeEstimate>]; 2],
    errors: &str,
) -> Result<Figure, ReportError> {
    let bars = |list: &[Option<JackknifeEstimate>], crossed: bool, aside: f64| {
        let one = |(t, m): (usize, &Option<JackknifeEstimate>)| {
            ErrorBar::of(t as f64 + aside, *m).map(|bar| ErrorBar { crossed, ..bar })
        };
        list.iter().enumerate().filter_map(one).collect::<Vec<_>>()
    };
    let mut all = bars(masses, false, 0.0);
    // The bars are shifted sideways, so that they do not cover the bars of the other state.
    all.extend(bars(partner, true, 0.15));
    let crosses = if all.iter().any(|bar| bar.crossed) { "; crosses: the parity partner" } else { "" };
    let figure = FittedFigure {
        about: "Effective masses of both parities against the time from the source".into(),
        axes: ["t".into(), format!("a m, {name}")],
        counts: true,
        bars: &all,
        curve: None,
        levels: Vec::new(),
    };
    figure.drawn(format!(
        "Effective masses of the {name}, from C(t − 2) to C(t + 3), where the parity partner alternates in sign; \
         {errors}{crosses}."
    ))
}

/// Draws the PCAC quark mass m(t), with the fitted constant in its window.
pub fn pcac_figure(
    name: &str,
    masses: &[Option<JackknifeEstimate>],
    plateau: Option<(f64, [usize; 2])>,
    errors: &str,
) -> Result<Figure, ReportError> {
    let bars: Vec<ErrorBar> = masses.iter().enumerate().filter_map(|(t, m)| ErrorBar::of(t as f64, *m)).collect();
    let curve = plateau.map(|(mass, window)| {
        let window = window.map(|t| t as f64);
        FittedCurve::of("fit".into(), window, window, |_| mass)
    });
    let figure = FittedFigure {
        about: "PCAC mass against the time from the source".into(),
        axes: ["t".into(), format!("a m, {name}")],
        counts: true,
        bars: &bars,
        curve,
        levels: Vec::new(),
    };
    figure.drawn(format!("Quark mass from the axial current against the time from the source; {errors}."))
}

/// Draws t² E as a function of the flow time t, with a line at `level`.
pub fn flow_figure(
    points: &[(f64, Option<JackknifeEstimate>)],
    level: f64,
    errors: &str,
) -> Result<Figure, ReportError> {
    // At most a hundred error bars are drawn, because more would be indistinguishable.
    let every = points.len().div_ceil(100).max(1);
    let bars: Vec<ErrorBar> = points.iter().step_by(every).filter_map(|(t, e)| ErrorBar::of(*t, *e)).collect();
    let figure = FittedFigure {
        about: "Energy density along the gradient flow".into(),
        axes: ["t / a²".into(), "t² ⟨E⟩".into()],
        counts: false,
        bars: &bars,
        curve: None,
        levels: vec![(format!("t² E = {level}"), level)],
    };
    figure.drawn(format!("t² ⟨E⟩ of the clover-leaf field strength along the gradient flow; {errors}."))
}

/// Draws chiral condensates as a function of the quark mass. `errors` describes the errors in the caption.
pub fn condensate_figure(points: &[(f64, Option<JackknifeEstimate>)], errors: &str) -> Result<Figure, ReportError> {
    let bars: Vec<ErrorBar> = points.iter().filter_map(|(m, trace)| ErrorBar::of(*m, *trace)).collect();
    let figure = FittedFigure {
        about: "Condensate against the mass".into(),
        axes: ["a m".into(), "Re tr M⁻¹ / V".into()],
        counts: false,
        bars: &bars,
        curve: None,
        levels: Vec::new(),
    };
    figure.drawn(format!("Condensate against the mass; {errors}."))
}

/// Draws V(R) with the fitted Cornell potential and the distances of the fit.
pub fn potential_figure(
    points: &[(f64, Option<JackknifeEstimate>)],
    fit: Option<(&[f64], [f64; 2])>,
    errors: &str,
) -> Result<Figure, ReportError> {
    let bars: Vec<ErrorBar> = points.iter().filter_map(|(r, v)| ErrorBar::of(*r, *v)).collect();
    let ends = [bars.first().map_or(1.0, |bar| bar.at), bars.last().map_or(1.0, |bar| bar.at)];
    let curve = fit.map(|(parameters, window)| {
        let value = |r: f64| Cornell.value(r, parameters, &mut [0.0; 3]);
        FittedCurve::of("V₀ − α/R + σR".into(), window, ends, value)
    });
    let figure = FittedFigure {
        about: "Static potential against the distance".into(),
        axes: ["R / a".into(), "a V(R)".into()],
        counts: false,
        bars: &bars,
        curve,
        levels: Vec::new(),
    };
    figure.drawn(format!("Static potential from Wilson loops; {errors}."))
}
