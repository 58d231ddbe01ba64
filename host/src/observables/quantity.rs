//! Measured quantities. Each quantity is declared once: name in results, key in JSON, unit, kernel and meaning. Commands and records use
//! these declarations, and `docs/output.md` has a row for each.
use crate::gauge::measure::{LINK_TRACE_NAME, PLAQUETTE_NAME};
use gpu_kernels::Table;
use gpu_kernels::gauge::PLAQUETTE as PLAQUETTE_KERNEL;
use gpu_kernels::gauge_force::{FIELD_STRENGTH, LOOP, TEMPORAL_LINE};

/// Number format of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// Fixed point, with this many digits after the point.
    Fixed(usize),
    /// Fixed point with a sign, with this many digits after the point.
    Signed(usize),
    /// Scientific notation, with this many digits after the point.
    Scientific(usize),
}

/// Measured quantity with its names, unit, kernel and number format.
#[derive(Debug)]
pub struct Quantity {
    /// Name in printed results.
    pub name: &'static str,
    /// Name of the quantity of which this one is a part. Printed results list parts after that quantity.
    pub part_of: Option<&'static str>,
    /// Key in JSON; a point separates the key of an object from a key within it.
    pub key: &'static str,
    /// Unit, in lattice units such as `a^2`; empty for a quantity without unit.
    pub unit: &'static str,
    /// Kernel that sums the quantity; `None` if it is computed on the host or from other quantities.
    pub kernel: Option<&'static Table>,
    /// Meaning of the quantity, as `docs/output.md` describes it.
    pub meaning: &'static str,
    /// Number format of the quantity in printed results.
    pub digits: Digits,
}

/// Mean plaquette over all planes.
pub static PLAQUETTE: Quantity = Quantity {
    name: PLAQUETTE_NAME,
    part_of: None,
    key: "plaquette.mean",
    unit: "",
    kernel: Some(PLAQUETTE_KERNEL.0),
    meaning: "mean of Re tr P / 3 over all planes, P = U_μ(x) U_ν(x+μ̂) U_μ†(x+ν̂) U_ν†(x)",
    digits: Digits::Fixed(12),
};
/// Mean plaquette over the spatial planes.
pub static PLAQUETTE_SPATIAL: Quantity = Quantity {
    name: "spatial",
    part_of: Some(PLAQUETTE_NAME),
    key: "plaquette.spatial",
    meaning: "mean of Re tr P / 3 over the xy, xz and yz planes",
    ..PLAQUETTE
};
/// Mean plaquette over the planes with t.
pub static PLAQUETTE_TEMPORAL: Quantity = Quantity {
    name: "temporal",
    part_of: Some(PLAQUETTE_NAME),
    key: "plaquette.temporal",
    meaning: "mean of Re tr P / 3 over the xt, yt and zt planes",
    ..PLAQUETTE
};
/// Mean of Re tr U / 3 over all links U.
pub static LINK_TRACE: Quantity =
    Quantity { name: LINK_TRACE_NAME, key: "link_trace", meaning: "mean of Re tr U / 3 over all links", ..PLAQUETTE };
/// Largest distance of a link from SU(3).
pub static UNITARITY_VIOLATION: Quantity = Quantity {
    name: "unitarity violation",
    key: "unitarity_violation",
    kernel: None,
    meaning: "unitarity violation of the worst link: the larger of ‖U U† − 1‖ and abs(det U − 1)",
    digits: Digits::Scientific(2),
    ..PLAQUETTE
};
/// Mean of Re tr / 3 over the rectangles of two links by one.
pub static RECTANGLE: Quantity = Quantity {
    name: "rectangle",
    key: "rectangle",
    kernel: Some(LOOP.0),
    meaning: "mean of Re tr R / 3 over all 2×1 loops",
    ..PLAQUETTE
};
/// Polyakov loop, as a mean over space.
pub static POLYAKOV_LOOP: Quantity = Quantity {
    name: "Polyakov loop",
    key: "polyakov_loop",
    kernel: Some(TEMPORAL_LINE.0),
    meaning: "`[re, im]` of the mean over space of tr Π_t U_t / 3",
    digits: Digits::Signed(9),
    ..PLAQUETTE
};
/// Energy density from the clover-leaf field strength; JSON also contains its magnetic and electric parts.
pub static ENERGY_DENSITY: Quantity = Quantity {
    name: "energy density",
    key: "energy",
    unit: "a^-4",
    kernel: Some(FIELD_STRENGTH.0),
    meaning: "−½ Σ_μν tr F_μν², mean over sites, with the clover-leaf field strength F: the sum of `energy.space` and `energy.time`",
    digits: Digits::Fixed(9),
    ..PLAQUETTE
};
/// Energy density of the magnetic field.
pub static ENERGY_SPACE: Quantity = Quantity {
    name: "space",
    part_of: Some("energy density"),
    key: "energy.space",
    meaning: "−Σ tr F² over the spatial planes, mean over sites",
    ..ENERGY_DENSITY
};
/// Energy density of the electric field.
pub static ENERGY_TIME: Quantity = Quantity {
    name: "time",
    part_of: Some("energy density"),
    key: "energy.time",
    meaning: "−Σ tr F² over the temporal planes, mean over sites",
    ..ENERGY_DENSITY
};
/// Energy density from plaquettes.
pub static PLAQUETTE_ENERGY: Quantity = Quantity {
    name: "energy density of plaquettes",
    key: "plaquette_energy",
    kernel: Some(PLAQUETTE_KERNEL.0),
    meaning: "2 Σ Re tr (1 − P) over the planes, mean over sites",
    ..ENERGY_DENSITY
};
/// Topological charge from the clover-leaf field strength.
pub static CHARGE: Quantity = Quantity {
    name: "topological charge",
    key: "charge",
    unit: "",
    meaning: "−(1/32π²) Σ_x ε_μνρσ tr F_μν F_ρσ, with the clover-leaf field strength",
    digits: Digits::Signed(6),
    ..ENERGY_DENSITY
};
/// Flow time t of the gradient flow.
pub static FLOW_TIME: Quantity = Quantity {
    name: "t",
    key: "t",
    unit: "a^2",
    kernel: None,
    meaning: "time of the gradient flow",
    digits: Digits::Fixed(4),
    ..PLAQUETTE
};
/// Scale t₀, the flow time at which t² E reaches 0.3.
pub static T0: Quantity = Quantity {
    name: "t0",
    key: "t0",
    meaning: "flow time at which t² E reaches 0.3; `null` if it does not",
    digits: Digits::Fixed(6),
    ..FLOW_TIME
};
/// Scale w₀, √t at the flow time t at which t d/dt t² E reaches 0.3.
pub static W0: Quantity = Quantity {
    name: "w0",
    key: "w0",
    unit: "a",
    meaning: "√t at the flow time at which t d/dt t² E reaches 0.3; `null` if it does not",
    ..T0
};
/// Wilson loops W(R, T) for several separations R and times T.
pub static WILSON_LOOPS: Quantity = Quantity {
    name: "Wilson loops",
    key: "wilson_loops",
    unit: "",
    kernel: None,
    meaning: "array of `r` and `values`: W(R, T) for T = 1, 2, …, mean of Re tr / 3 over all loops of this size",
    digits: Digits::Fixed(9),
    ..PLAQUETTE
};
/// Chiral condensate from noise vectors.
pub static CONDENSATE: Quantity = Quantity {
    name: "condensate",
    key: "condensate",
    unit: "a^-3",
    kernel: None,
    meaning: "ψ̄ψ = tr M⁻¹ / V of one staggered field, which describes four flavours, from noise vectors",
    digits: Digits::Fixed(6),
    ..PLAQUETTE
};

/// All quantities, in the order of `docs/output.md`.
pub static QUANTITIES: [&Quantity; 17] = [
    &PLAQUETTE,
    &PLAQUETTE_SPATIAL,
    &PLAQUETTE_TEMPORAL,
    &LINK_TRACE,
    &UNITARITY_VIOLATION,
    &RECTANGLE,
    &POLYAKOV_LOOP,
    &ENERGY_DENSITY,
    &ENERGY_SPACE,
    &ENERGY_TIME,
    &PLAQUETTE_ENERGY,
    &CHARGE,
    &FLOW_TIME,
    &T0,
    &W0,
    &WILSON_LOOPS,
    &CONDENSATE,
];

impl Quantity {
    /// Formats a value in the number format of the quantity.
    pub fn number(&self, value: f64) -> String {
        match self.digits {
            Digits::Fixed(digits) => format!("{value:.digits$}"),
            Digits::Signed(digits) => format!("{value:+.digits$}"),
            Digits::Scientific(digits) => format!("{value:.digits$e}"),
        }
    }
    /// Returns a line of printed results: the name, and `text` in a fixed column.
    pub fn line(&self, text: &str) -> String {
        let indent = if self.part_of.is_some() { "  " } else { "" };
        format!("{:<21}{text}\n", format!("{indent}{}", self.name))
    }
    /// Returns a line of printed results with a number as the value.
    pub fn line_of(&self, value: f64) -> String {
        self.line(&self.number(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// `docs/output.md` has the table.
    #[test]
    fn all_are_documented() {
        let document = include_str!("../../../docs/output.md");
        let mut keys = BTreeSet::new();
        for quantity in QUANTITIES {
            let Quantity { name, part_of, key, unit, kernel, meaning, .. } = quantity;
            assert!(keys.insert(key), "{key}");
            let name = part_of.map_or(name.to_string(), |whole| format!("{whole}, {name}"));
            let unit = if unit.is_empty() { "1".to_string() } else { unit.replace("^", "") };
            let unit = unit.replace("-4", "⁻⁴").replace("-3", "⁻³").replace('2', "²");
            let kernel = kernel.map_or("–".into(), |table| format!("`{}`", table.name));
            let row = format!("| {name} | `{key}` | {unit} | {kernel} | {meaning} |");
            assert!(document.contains(&row), "docs/output.md has no row {row}");
            if let Some(whole) = part_of {
                assert!(QUANTITIES.iter().any(|other| other.name == *whole), "{whole}");
            }
        }
    }

    #[test]
    fn lines_of_numbers() {
        assert_eq!(PLAQUETTE.line_of(0.5), "plaquette            0.500000000000\n");
        assert_eq!(PLAQUETTE_SPATIAL.line_of(0.5), "  spatial            0.500000000000\n");
        assert_eq!(CHARGE.line_of(1.0), "topological charge   +1.000000\n");
        assert_eq!(UNITARITY_VIOLATION.line_of(1.25e-13), "unitarity violation  1.25e-13\n");
    }
}
