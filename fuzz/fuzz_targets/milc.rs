//! MILC headers and whole files.
#![no_main]
use ferrite::files::{ReadOptions, gauge_from, milc};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(|bytes: &[u8]| {
    if milc::parse(bytes).is_ok() {
        let lenient = ReadOptions { verify: false, allow_non_unitary: true, ..Default::default() };
        let _ = gauge_from(&mut Cursor::new(bytes), &lenient);
        let _ = gauge_from(&mut Cursor::new(bytes), &ReadOptions::default());
    }
});
