//! LIME containers, and ILDG and SciDAC fields in them.
#![no_main]
use ferrite::field::host::{ColourVector, Spinor};
use ferrite::files::{ReadFrom, ReadOptions, lime, read_fermion, read_fermions, read_field, read_gauge};
use ferrite::lattice::Lattice;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if lime::parse(bytes).is_err() {
        return;
    }
    let given = Lattice::new([2, 2, 2, 2]).ok();
    for (lattice, record) in [(None, 0), (None, 1), (given, 0)] {
        let options = ReadOptions { verify: false, allow_non_unitary: true, lattice, record, ..Default::default() };
        let _ = read_gauge(ReadFrom::Memory(bytes), &options);
        let _ = read_fermion::<Spinor>(ReadFrom::Memory(bytes), &options);
        let _ = read_fermion::<ColourVector>(ReadFrom::Memory(bytes), &options);
        let _ = read_fermions::<Spinor>(ReadFrom::Memory(bytes), &options);
        let _ = read_fermions::<ColourVector>(ReadFrom::Memory(bytes), &options);
        let _ = read_field(ReadFrom::Memory(bytes), &ReadOptions::default());
    }
});
