//! Setups of multigrid.
#![no_main]
use ferrite::comms::Solo;
use ferrite::files::setup::{SetupReader, inspect_setup};
use ferrite::files::{ReadFrom, SharedFile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if inspect_setup(ReadFrom::Memory(bytes)).is_err() {
        return;
    }
    let path = std::env::temp_dir().join(format!("ferrite-fuzz-{}.setup", std::process::id()));
    std::fs::write(&path, bytes).expect("the folder of temporary files can be written");
    let network = Solo::new();
    let Ok(reader) = SetupReader::open(SharedFile::new(&path, &network)) else { return };
    for number in [0, reader.header().vectors - 1, reader.header().vectors] {
        let _ = reader.read(number);
    }
});
