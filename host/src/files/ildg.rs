//! The `ildg-format` record: lattice and precision of the links that follow, as the International Lattice Data Grid
//! defines them.
use super::{FilePrecision, Problem, xml};
use crate::lattice::Lattice;

/// What the record tells; either may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IldgFormat {
    /// Extents lx, ly, lz, lt.
    pub size: Option<[usize; 4]>,
    /// 32 or 64 bits.
    pub precision: Option<FilePrecision>,
}

/// Reads the XML of the record.
pub fn parse(text: &str) -> Result<IldgFormat, Problem> {
    let place = "ildg-format record";
    if let Some(field) = xml::text(text, "field")
        && field != "su3gauge"
    {
        return Err(Problem::field(place, "field", field, "su3gauge"));
    }
    let precision = match xml::text(text, "precision") {
        None => None,
        Some("32") => Some(FilePrecision::Single),
        Some("64") => Some(FilePrecision::Double),
        Some(other) => return Err(Problem::field(place, "precision", other, "32 or 64")),
    };
    let extents = ["lx", "ly", "lz", "lt"].map(|tag| xml::text(text, tag));
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

/// The XML of the record.
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
