//! Record `ildg-format` of the International Lattice Data Grid, which gives the lattice and the precision of the links that follow.
use super::xml::Elements;
use super::{FilePrecision, Leniency, Problem, colours_in, precision_from};
use crate::lattice::Lattice;

/// Content of the record `ildg-format`; entries may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IldgFormat {
    /// Extents lx, ly, lz and lt of the lattice.
    pub size: Option<[usize; 4]>,
    /// Precision of the stored numbers: 32 or 64 bits.
    pub precision: Option<FilePrecision>,
}

const PLACE: &str = "ildg-format record";

/// Parses the XML of the record `ildg-format`; an invalid entry is an error.
pub fn parse(text: &str) -> Result<IldgFormat, Problem> {
    parse_with(text, &mut Leniency { verify: true, notes: Vec::new() })
}

/// Parses the XML of the record `ildg-format`; `leniency` determines whether an invalid entry is an error.
pub(super) fn parse_with(text: &str, leniency: &mut Leniency) -> Result<IldgFormat, Problem> {
    let xml = Elements::of(text);
    if let Some(field) = xml.text("field") {
        let word: String = field.chars().filter(char::is_ascii_alphanumeric).collect();
        let is_known = ["su3gauge", "su3", "su3gaugefield"].contains(&word.to_ascii_lowercase().as_str());
        match colours_in(field) {
            Some(colours) if colours != 3 => return Err(Problem::other_group(PLACE, "field", field, colours)),
            _ if is_known => {}
            _ => drop(leniency.optional::<()>(Err(Problem::optional(PLACE, "field", field, "su3gauge")))?),
        }
    }
    entries(&xml, PLACE, leniency)
}

/// Parses the XML that tmLQCD writes before a spinor field. It has the same entries as the record `ildg-format`.
pub(super) fn parse_fermion(text: &str, place: &'static str, leniency: &mut Leniency) -> Result<IldgFormat, Problem> {
    let xml = Elements::of(text);
    if let Some(field) = xml.text("field")
        && !field.eq_ignore_ascii_case("diracFermion")
    {
        leniency.optional::<()>(Err(Problem::optional(place, "field", field, "diracFermion")))?;
    }
    entries(&xml, place, leniency)
}

/// Parses the precision and the extents from XML elements.
fn entries(xml: &Elements, place: &'static str, leniency: &mut Leniency) -> Result<IldgFormat, Problem> {
    let precision = match xml.text("precision") {
        None | Some("") => None,
        Some(text) => leniency
            .optional(precision_from(text).ok_or_else(|| Problem::optional(place, "precision", text, "32 or 64")))?,
    };
    let extents = ["lx", "ly", "lz", "lt"].map(|tag| xml.text(tag));
    let size = match extents {
        [Some(x), Some(y), Some(z), Some(t)] => {
            let mut size = [0; 4];
            for (extent, text) in size.iter_mut().zip([x, y, z, t]) {
                *extent = text.parse().map_err(|_| Problem::field(place, "extent", text, "a number of sites"))?;
            }
            Some(size)
        }
        _ => None,
    };
    Ok(IldgFormat { size, precision })
}

/// Returns the XML of the record `ildg-format`.
pub(crate) fn print(lattice: Lattice, precision: FilePrecision) -> String {
    let [x, y, z, t] = lattice.size();
    let bits = 8 * precision.bytes();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ildgFormat xmlns=\"http://www.lqcd.org/ildg\" \
         xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"http://www.lqcd.org/ildg http://www.lqcd.org/ildg/filefmt.xsd\">\
         <version>1.0</version><field>su3gauge</field><precision>{bits}</precision>\
         <lx>{x}</lx><ly>{y}</ly><lz>{z}</lz><lt>{t}</lt></ildgFormat>\n"
    )
}
