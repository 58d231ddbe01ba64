//! NERSC headers and whole files.
#![no_main]
use ferrite::files::{ReadFrom, ReadOptions, nersc, read_gauge};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // Only a header that holds leads to the data.
    if nersc::parse(bytes).is_ok() {
        let lenient = ReadOptions { verify: false, allow_non_unitary: true, ..Default::default() };
        let _ = read_gauge(ReadFrom::Memory(bytes), &lenient);
        let _ = read_gauge(ReadFrom::Memory(bytes), &ReadOptions::default());
    }
});
