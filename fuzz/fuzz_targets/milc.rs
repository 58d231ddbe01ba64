//! MILC headers and whole files.
#![no_main]
use ferrite::field::host::ColourVector;
use ferrite::files::{ReadFrom, ReadOptions, milc, read_fermions, read_gauge};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if milc::parse(bytes).is_ok() {
        let lenient = ReadOptions { verify: false, allow_non_unitary: true, ..Default::default() };
        let _ = read_gauge(ReadFrom::Memory(bytes), &lenient);
        let _ = read_gauge(ReadFrom::Memory(bytes), &ReadOptions::default());
        let _ = read_fermions::<ColourVector>(ReadFrom::Memory(bytes), &lenient);
    }
});
