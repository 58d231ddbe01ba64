//! openQCD's headers and whole files.
#![no_main]
use ferrite::files::{ReadFrom, ReadOptions, openqcd, read_gauge};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if openqcd::parse(bytes).is_ok() {
        let lenient = ReadOptions { verify: false, allow_non_unitary: true, ..Default::default() };
        let _ = read_gauge(ReadFrom::Memory(bytes), &lenient);
        let _ = read_gauge(ReadFrom::Memory(bytes), &ReadOptions::default());
    }
});
