//! NumPy arrays: headers, single fields and blocks of fields.
#![no_main]
use ferrite::field::host::{ColourVector, Spinor};
use ferrite::files::{ReadFrom, ReadOptions, npy, read_fermion, read_field, read_gauge};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if npy::parse(bytes).is_err() {
        return;
    }
    let options = ReadOptions { verify: false, allow_non_unitary: true, ..Default::default() };
    let _ = read_gauge(ReadFrom::Memory(bytes), &options);
    let _ = read_fermion::<Spinor>(ReadFrom::Memory(bytes), &options);
    let _ = read_fermion::<ColourVector>(ReadFrom::Memory(bytes), &options);
    let _ = read_field(ReadFrom::Memory(bytes), &ReadOptions::default());
});
