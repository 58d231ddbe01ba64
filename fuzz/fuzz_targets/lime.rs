//! LIME containers, and ILDG and SciDAC fields in them.
#![no_main]
use ferrite::field::host::{ColourVector, Spinor};
use ferrite::files::{ReadOptions, fermion_from, field_from, gauge_from, lime};
use ferrite::lattice::Lattice;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(|bytes: &[u8]| {
    if lime::parse(bytes).is_err() {
        return;
    }
    let given = Lattice::new([2, 2, 2, 2]).ok();
    for (lattice, record) in [(None, 0), (None, 1), (given, 0)] {
        let options = ReadOptions { verify: false, allow_non_unitary: true, lattice, record, ..Default::default() };
        let _ = gauge_from(&mut Cursor::new(bytes), &options);
        let _ = fermion_from::<Spinor>(&mut Cursor::new(bytes), &options);
        let _ = fermion_from::<ColourVector>(&mut Cursor::new(bytes), &options);
        let _ = field_from(&mut Cursor::new(bytes), &ReadOptions::default());
    }
});
