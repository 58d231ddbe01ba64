//! Tolerances of M v and M†M v against the reference where only host fields are seen: sources go in exactly, and images come out as they
//! are stored.
use super::staggered::{Budget, Kept, Off, asqtad_error};
use crate::accuracy::Accuracy;
use crate::formats::LinkFormat;
use crate::report::Tolerance;
use crate::staggered_reference::StaggeredDirac;
use ferrite::Precision;
use ferrite::field::host::HostColour;
use ferrite::operators::fat_links::Improvement;

/// Scales by which links are kept, and the errors that they have before that, against the reference.
#[derive(Clone, Copy, Debug)]
pub struct LinkErrors {
    /// Divisors of fat and long links where a format holds numbers from −1 to 1.
    scales: [f64; 2],
    /// ‖δF‖ / √3 and ‖δL‖ / √3 in the mean.
    built: f64,
}

impl LinkErrors {
    /// Errors of thin links, which are exact before they are kept.
    pub fn thin() -> Self {
        LinkErrors { scales: [1.0; 2], built: 0.0 }
    }
    /// Errors of asqtad links with the tadpole factor u_0.
    pub fn asqtad(made: &Improvement, u0: f64) -> Self {
        LinkErrors { scales: [made.fat_scale, made.long_scale], built: asqtad_error(u0) }
    }
    /// Errors of HISQ links. Links of the first level are off by 7 units, as those of asqtad for coefficients that sum up to 1; the
    /// projection of regular links makes that at most twice as much. The second level has up to seven of them in a path and coefficients
    /// that sum up to 2.6: 255 units if errors have one sign, and its own 7 times 2.6.
    pub fn hisq(made: &Improvement) -> Self {
        LinkErrors { scales: [made.fat_scale, made.long_scale], built: 273.0 * Precision::Double.unit() }
    }
}

/// Tolerance of M v, or of M†M v as m² v − ¼ D² v, computed in a precision, with a storage of thin links or of long ones.
pub fn image_tolerance(
    operator: &StaggeredDirac,
    errors: LinkErrors,
    format: LinkFormat,
    v: &HostColour,
    normal: bool,
) -> Tolerance {
    let LinkErrors { scales, built } = errors;
    let budget = match operator.long {
        None => Budget { kinds: vec![Kept::new(operator.fat, format, 1.0, 1, 0.0)], precision: format.0 },
        Some(long) => Budget::of_both([operator.fat, long], scales, format, [built; 2]),
    };
    let v = std::slice::from_ref(v);
    let exact = Off { norms: vec![0.0], sites: vec![vec![0.0; v[0].lattice().volume()]] };
    let input = budget.stored(exact, 1.0, v);
    if normal {
        // The hopping term is stored on the way.
        let hops = [operator.derivative(&v[0])];
        let first = budget.stored(budget.hop(1.0, v, Some(&input)), 1.0, &hops);
        let off = sum(budget.hop(0.25, &hops, Some(&first)), operator.mass.powi(2), &input);
        return budget.tolerance(&off, &[operator.normal(&v[0])]);
    }
    let off = sum(budget.hop(0.5, v, Some(&input)), operator.mass.abs(), &input);
    budget.tolerance(&off, &[operator.apply(false, &v[0])])
}

/// Errors of a sum, the second term c times as large.
fn sum(mut off: Off, c: f64, other: &Off) -> Off {
    let add = |to: &mut [f64], more: &[f64]| to.iter_mut().zip(more).for_each(|(to, more)| *to += c * more);
    add(&mut off.norms, &other.norms);
    off.sites.iter_mut().zip(&other.sites).for_each(|(to, more)| add(to, more));
    off
}
