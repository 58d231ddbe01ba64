//! The `ildg-format` record: lattice and precision of the links that follow, as defined by the International Lattice Data Grid.
use super::xml::Elements;
use super::{FilePrecision, Leniency, Problem, colours_in, precision_from};
use crate::lattice::Lattice;

/// Content of the record; either entry may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IldgFormat {
    /// Extents lx, ly, lz, lt.
    pub size: Option<[usize; 4]>,
    /// Precision: 32 or 64 bits.
    pub precision: Option<FilePrecision>,
}

const PLACE: &str = "ildg-format record";

/// Reads the XML of the record, and refuses entries that cannot be parsed.
pub fn parse(text: &str) -> Result<IldgFormat, Problem> {
    parse_with(text, &mut Leniency { verify: true, notes: Vec::new() })
}

/// Reads the XML of the record.
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

/// Reads the XML that tmLQCD writes before a spinor field, with the same entries.
pub(super) fn parse_fermion(text: &str, place: &'static str, leniency: &mut Leniency) -> Result<IldgFormat, Problem> {
    let xml = Elements::of(text);
    if let Some(field) = xml.text("field")
        && !field.eq_ignore_ascii_case("diracFermion")
    {
        leniency.optional::<()>(Err(Problem::optional(place, "field", field, "diracFermion")))?;
    }
    entries(&xml, place, leniency)
}

/// Parses precision and extents.
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

/// Returns the XML of the record.
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
