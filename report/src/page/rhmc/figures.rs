//! Pictures of a run of RHMC.
use super::observables::Observable;
use super::series::{histogram, limits, running, thin};
use crate::error::ReportError;
use crate::page::figure::{Figure, figure, layer, line, roomy};
use crate::plot::panel::{Layer, LayerShape, Panel, PlotColour};
use crate::records::trajectories::RunHistory;
use crate::text::{count, digits};
use std::f64::consts::TAU;
use std::ops::Range;

/// Maximum number of points of a curve; more would not be distinguishable at this width.
const POINTS: usize = 2000;
/// Maximum number of points that are marked by symbols.
const FEW: usize = 100;

/// Returns the range of trajectory numbers, with a margin.
fn across(points: &[(u64, f64)]) -> Range<f64> {
    between(points.first().map_or(0.0, |p| p.0 as f64), points.last().map_or(1.0, |p| p.0 as f64))
}

fn between(first: f64, last: f64) -> Range<f64> {
    let room = (0.015 * (last - first)).max(0.5);
    first - room..last + room
}

/// Returns the range of values to show: all values that count, and earlier values near them.
fn upwards(observable: &Observable) -> Range<f64> {
    let values = |points: &[(u64, f64)]| points.iter().map(|p| p.1).collect::<Vec<_>>();
    let (before, kept) = observable.points.split_at(observable.first);
    match limits(&values(kept)).filter(|(low, high)| low < high) {
        Some((low, high)) => {
            let reach = 0.5 * (high - low);
            let near = before.iter().map(|p| p.1).filter(|x| (low - reach..=high + reach).contains(x));
            roomy(near.fold((low, high), |(low, high), x| (low.min(x), high.max(x))))
        }
        None => limits(&values(&observable.points)).map_or(0.0..1.0, roomy),
    }
}

fn thinned(points: &[(u64, f64)]) -> Vec<(f64, f64)> {
    let values: Vec<f64> = points.iter().map(|p| p.1).collect();
    thin(&values, POINTS).into_iter().map(|j| (points[j].0 as f64, points[j].1)).collect()
}

/// Returns a sentence on thinning if not all points are drawn, otherwise an empty text.
fn thinning(points: &[(u64, f64)]) -> String {
    if points.len() <= POINTS {
        return String::new();
    }
    format!(" Of {} points, the figure shows the extremes of {} intervals.", points.len(), POINTS / 2)
}

/// Lower and upper ends of an error band, each with its position.
type Band = Vec<(f64, f64, f64)>;

/// Returns the error band and the running average, of the values that count.
fn averages(observable: &Observable) -> (Band, Vec<(f64, f64)>) {
    let kept: Vec<(u64, f64)> = observable.kept().collect();
    let values: Vec<f64> = kept.iter().map(|p| p.1).collect();
    let all = running(&values, observable.estimate.tau);
    let places: Vec<usize> = match all.len() {
        0 => Vec::new(),
        n if n <= POINTS => (0..n).collect(),
        n => (0..POINTS).map(|j| j * (n - 1) / (POINTS - 1)).collect(),
    };
    let band = places.iter().map(|&j| (kept[j].0 as f64, all[j][0] - all[j][1], all[j][0] + all[j][1]));
    let line = places.iter().map(|&j| (kept[j].0 as f64, all[j][0]));
    (band.collect(), line.collect())
}

/// Draws the history of an observable with its running average.
pub fn history(observable: &Observable) -> Result<Figure, ReportError> {
    let (before, kept) = observable.points.split_at(observable.first);
    let (band, average) = averages(observable);
    // The band is drawn before the other layers, so that it does not cover them.
    let mut layers = Vec::new();
    if average.len() > 1 {
        layers.push(layer("error", PlotColour::Orange, LayerShape::Band(band)));
    }
    for (points, name, colour) in [(before, "left out", PlotColour::Grey), (kept, "value", PlotColour::Sky)] {
        if points.is_empty() {
            continue;
        }
        let few = observable.points.len() <= FEW;
        let shown = thinned(points);
        let named = if few { "" } else { name };
        layers.push(layer(named, colour, line(shown.clone(), 1)));
        if few {
            layers.push(layer(name, colour, LayerShape::Dots(shown)));
        }
    }
    if average.len() > 1 {
        layers.push(layer("running average", PlotColour::Vermilion, line(average, 2)));
    }
    let name = &observable.name;
    let panel = Panel {
        about: format!("History of {name}, with its running average"),
        axes: ["trajectory".into(), axis(name)],
        ranges: [across(&observable.points), upwards(observable)],
        counts: true,
        layers,
    };
    figure(&panel, format!("{name}: {}.{}", mean(observable), thinning(&observable.points)))
}

/// Describes the mean of an observable with its error.
fn mean(observable: &Observable) -> String {
    let [mean, error] = digits(observable.estimate.mean, observable.estimate.error);
    match observable.estimate.count {
        0 => "no mean yet".into(),
        1 => format!("{mean}, error not yet known"),
        _ => format!("{mean} ± {error}"),
    }
}

/// Shortens the name of an observable if it is too long for an axis.
fn axis(name: &str) -> String {
    if name.chars().count() > 34 { name.chars().take(33).chain(['…']).collect() } else { name.into() }
}

/// Draws ΔH of each trajectory, and marks trajectories as accepted, rejected, or without a Metropolis step.
pub fn delta_history(run: &RunHistory, observable: &Observable) -> Result<Figure, ReportError> {
    let of = |wanted: &dyn Fn(bool, bool) -> bool| {
        let there = run.trajectories.iter().filter(|t| wanted(t.metropolis, t.accepted));
        there.map(|t| (t.trajectory, t.delta_h)).collect::<Vec<(u64, f64)>>()
    };
    let classes = [
        ("no Metropolis step", PlotColour::Grey, of(&|metropolis, _| !metropolis)),
        ("accepted", PlotColour::Blue, of(&|metropolis, accepted| metropolis && accepted)),
        ("rejected", PlotColour::Vermilion, of(&|metropolis, accepted| metropolis && !accepted)),
    ];
    let ranges = [across(&observable.points), upwards(observable)];
    let outside = observable.points.iter().filter(|p| p.1.is_finite() && !ranges[1].contains(&p.1)).count();
    let none = observable.points.iter().filter(|p| !p.1.is_finite()).count();
    let [counted, accepted, rejected] = [0, 1, 2].map(|j| classes[j].2.len());
    let mut caption = format!("ΔH of each trajectory: {accepted} accepted, {rejected} rejected");
    if counted > 0 {
        caption += &format!(", {counted} without Metropolis step");
    }
    caption += ".";
    if outside > 0 {
        caption += &format!(" Outside the axes and drawn at the edge: {outside}.");
    }
    if none > 0 {
        caption += &format!(" Not a number: {none}.");
    }
    caption += &thinning(&observable.points);
    // The line at 0 is drawn before the points, so that it does not cover them.
    let [x, _] = ranges.clone();
    let zero = LayerShape::Line { points: vec![(x.start, 0.0), (x.end, 0.0)], width: 1, dashed: false };
    let mut layers = vec![layer("", PlotColour::Black, zero)];
    for (name, colour, points) in classes.into_iter().filter(|class| !class.2.is_empty()) {
        let shown = thinned(&points);
        let name = format!("{name}: {}", points.len());
        layers.push(Layer {
            name,
            colour,
            shape: if colour == PlotColour::Vermilion { LayerShape::Crosses(shown) } else { LayerShape::Dots(shown) },
        });
    }
    if let Some((first, _)) = observable.points.get(observable.first).filter(|_| observable.first > 0) {
        let (x, y) = (*first as f64 - 0.5, &ranges[1]);
        let edge = LayerShape::Line { points: vec![(x, y.start), (x, y.end)], width: 1, dashed: true };
        layers.push(layer("skipped trajectories", PlotColour::Black, edge));
    }
    let about = "History of ΔH, with accepted and rejected trajectories".into();
    figure(&Panel { about, axes: ["trajectory".into(), "ΔH".into()], ranges, counts: true, layers }, caption)
}

/// Draws a histogram of ΔH with a Gaussian of equal mean and width; returns `None` if no value counts.
pub fn delta_histogram(observable: &Observable) -> Option<Result<Figure, ReportError>> {
    let kept: Vec<f64> = observable.kept().map(|p| p.1).collect();
    let found = histogram(&kept)?;
    let heights: Vec<f64> = found.counts.iter().map(|n| *n as f64).collect();
    let mut top = heights.iter().copied().fold(1.0, f64::max);
    let x = roomy((found.low, found.high));
    // Outliers are left out, because they would make the Gaussian too wide for comparison with the histogram.
    let seen: Vec<f64> = kept.iter().copied().filter(|x| (found.low..=found.high).contains(x)).collect();
    let mut layers =
        vec![layer(&count(seen.len(), "value"), PlotColour::Sky, LayerShape::Bars(found.low, found.width(), heights))];
    let mut caption = "Histogram of ΔH.".to_string();
    if let Some((mean, sigma)) = width(&seen) {
        let factor = seen.len() as f64 * found.width() / (sigma * TAU.sqrt());
        let at = |j: u32| x.start + (x.end - x.start) * f64::from(j) / 300.0;
        let gaussian: Vec<(f64, f64)> =
            (0..=300).map(at).map(|x| (x, factor * (-0.5 * ((x - mean) / sigma).powi(2)).exp())).collect();
        top = gaussian.iter().map(|p| p.1).fold(top, f64::max);
        layers.push(layer("Gaussian of the same mean and width", PlotColour::Vermilion, line(gaussian, 2)));
        let [mean, sigma] = [mean, sigma].map(|x| digits(x, sigma / 30.0)[0].clone());
        caption = format!("Histogram of ΔH and a Gaussian with the same mean, {mean}, and width, σ = {sigma}.");
    }
    if found.outside > 0 {
        caption += &format!(" Outside the axes, and not included in the Gaussian: {}.", found.outside);
    }
    let about = "Histogram of ΔH with a Gaussian".into();
    let axes = ["ΔH".into(), "trajectories".into()];
    Some(figure(&Panel { about, axes, ranges: [x, 0.0..1.08 * top], counts: false, layers }, caption))
}

/// Returns mean and standard deviation of the values, or `None` if the deviation is not positive.
fn width(values: &[f64]) -> Option<(f64, f64)> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    Some((mean, (squares / (values.len() as f64 - 1.0)).sqrt())).filter(|(_, sigma)| *sigma > 0.0)
}

/// Draws the running average of exp(−ΔH), whose expectation value in equilibrium is 1; returns `None` if no value
/// counts.
pub fn exponential(observable: &Observable) -> Option<Result<Figure, ReportError>> {
    let (band, average) = averages(observable);
    let (first, last) = (average.first()?.0, average.last()?.0);
    // The first averages fluctuate strongly, so the range of the axis does not depend on them.
    let settled = || band.iter().skip(band.len() / 10).filter(|(_, low, high)| low.is_finite() && high.is_finite());
    let ends = settled().fold((1.0_f64, 1.0_f64), |(low, high), (_, a, b)| (low.min(*a), high.max(*b)));
    let y = roomy(if ends.0 < ends.1 { ends } else { (average.last()?.1.min(1.0), average.last()?.1.max(1.0)) });
    let x = between(first, last);
    let one = LayerShape::Line { points: vec![(x.start, 1.0), (x.end, 1.0)], width: 1, dashed: true };
    let mut layers = Vec::new();
    let name = "running average of exp(−ΔH)";
    if average.len() > 1 {
        layers.push(layer("error", PlotColour::Orange, LayerShape::Band(band)));
        layers.push(layer(name, PlotColour::Vermilion, line(average, 2)));
    } else {
        layers.push(layer(name, PlotColour::Vermilion, LayerShape::Dots(average)));
    }
    layers.push(layer("1", PlotColour::Black, one));
    let caption = format!("Running average of exp(−ΔH): {}. In equilibrium it is 1.", mean(observable));
    let about = "Running average of exp(−ΔH) and the line 1".into();
    let axes = ["trajectory".into(), "⟨exp(−ΔH)⟩".into()];
    Some(figure(&Panel { about, axes, ranges: [x, y], counts: true, layers }, caption))
}

/// Draws several histories in one picture, with names in the legend; returns `None` if `chosen` is empty.
pub fn together(chosen: &[(&str, &Observable)], what: &str, axis: &str) -> Option<Result<Figure, ReportError>> {
    const COLOURS: [PlotColour; 3] = [PlotColour::Blue, PlotColour::Vermilion, PlotColour::Green];
    let longest = chosen.iter().map(|(_, o)| &o.points).max_by_key(|points| points.len())?;
    let values: Vec<f64> = chosen.iter().flat_map(|(_, o)| o.points.iter().map(|p| p.1)).collect();
    let (_, high) = limits(&values).unwrap_or((0.0, 1.0));
    let x = chosen.iter().map(|(_, o)| across(&o.points)).reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))?;
    let (mut layers, mut means) = (Vec::new(), Vec::new());
    for ((name, observable), colour) in chosen.iter().zip(COLOURS.into_iter().cycle()) {
        let shown = thinned(&observable.points);
        let shape = if longest.len() <= FEW {
            layers.push(layer("", colour, line(shown.clone(), 1)));
            LayerShape::Dots(shown)
        } else {
            line(shown, 1)
        };
        layers.push(layer(name, colour, shape));
        means.push(format!("{name} {}", mean(observable)));
    }
    let panel = Panel {
        about: format!("{what} of each trajectory"),
        axes: ["trajectory".into(), axis.into()],
        ranges: [x, 0.0..1.08 * high.max(1e-9)],
        counts: true,
        layers,
    };
    Some(figure(&panel, format!("{what}: {}.{}", means.join(", "), thinning(longest))))
}

#[cfg(test)]
mod tests {
    use super::super::observables::{ObservableKind, collect};
    use super::*;
    use crate::records::trajectories::parse;
    use crate::records::trajectories::tests::line as trajectory;

    fn run(deltas: &[f64]) -> RunHistory {
        let text: String = deltas.iter().zip(1..).map(|(delta, n)| format!("{}\n", trajectory(n, *delta))).collect();
        parse(text.as_bytes(), "lines").unwrap()
    }

    #[test]
    fn accepted_and_rejected_are_counted_and_marked() {
        // The first two have no Metropolis step; those below 0.5 are accepted; one is far off.
        let run = run(&[3.0, -2.0, 0.1, 0.7, 0.2, 0.9, 0.3, 1e9]);
        let all = collect(&run, run.thermalisation());
        let delta = all.iter().find(|o| o.kind == ObservableKind::Delta).unwrap();
        let drawn = delta_history(&run, delta).unwrap();
        assert!(drawn.caption.contains("3 accepted, 3 rejected, 2 without Metropolis step"), "{}", drawn.caption);
        assert!(drawn.caption.contains("drawn at the edge: "));
        for name in ["accepted: 3", "rejected: 3", "no Metropolis step: 2"] {
            assert!(drawn.svg.contains(name));
        }
        // Dots and crosses of two lines, each with one in the legend.
        assert_eq!(drawn.svg.matches("<circle").count(), 3 + 2 + 2);
        let bars = delta_histogram(delta).unwrap().unwrap();
        assert!(bars.caption.contains("Outside the axes, and not included in the Gaussian: 1."), "{}", bars.caption);
        // Of 0.1, 0.7, 0.2, 0.9, 0.3.
        assert!(bars.caption.contains("mean, 0.440, and width, σ = 0.344."), "{}", bars.caption);
        assert!(bars.svg.contains("Gaussian of the same mean and width"));
    }

    #[test]
    fn one_trajectory_is_drawn_and_none_that_counts_too() {
        for (skip, there) in [(0, true), (1, false)] {
            let run = run(&[0.2]);
            let all = collect(&run, skip);
            for observable in &all {
                assert!(history(observable).unwrap().svg.contains("<circle"), "{}", observable.name);
            }
            let of = |kind| all.iter().find(|o| o.kind == kind).unwrap();
            assert_eq!(delta_histogram(of(ObservableKind::Delta)).is_some(), there);
            assert_eq!(exponential(of(ObservableKind::Exponential)).is_some(), there);
            assert!(together(&[("all", of(ObservableKind::Seconds))], "Seconds", "seconds").unwrap().is_ok());
        }
    }

    #[test]
    fn far_off_thermalisation_does_not_set_the_scale() {
        let deltas: Vec<f64> = [1e4, 300.0].into_iter().chain((0..50).map(|j| f64::from(j % 7) * 0.1)).collect();
        let run = run(&deltas);
        let all = collect(&run, run.thermalisation());
        let delta = all.iter().find(|o| o.kind == ObservableKind::Delta).unwrap();
        let y = upwards(delta);
        // Those that count reach from 0 to 0.6; what is before them is too far to be seen.
        assert!(y.start < 0.0 && y.start > -0.1 && y.end > 0.6 && y.end < 0.7, "{y:?}");
        let run = self::run(&[-0.2, 2.0, 0.0, 0.6, 0.1, 0.5]);
        let all = collect(&run, run.thermalisation());
        let y = upwards(all.iter().find(|o| o.kind == ObservableKind::Delta).unwrap());
        // −0.2 is near.
        assert!(y.start < -0.2 && y.start > -0.3 && y.end < 0.7, "{y:?}");
    }
}
