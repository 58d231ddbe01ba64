//! NumPy arrays: headers, single fields and blocks of fields.
#![no_main]
use ferrite::field::host::{ColourVector, Spinor};
use ferrite::files::{ReadOptions, fermion_from, field_from, gauge_from, npy};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(|bytes: &[u8]| {
    if npy::parse(bytes).is_err() {
        return;
    }
    let options = ReadOptions { verify: false, allow_non_unitary: true, ..Default::default() };
    let _ = gauge_from(&mut Cursor::new(bytes), &options);
    let _ = fermion_from::<Spinor>(&mut Cursor::new(bytes), &options);
    let _ = fermion_from::<ColourVector>(&mut Cursor::new(bytes), &options);
    let _ = field_from(&mut Cursor::new(bytes), &ReadOptions::default());
});
