//! The file in which `ferrite tune` keeps what it measured.
#![no_main]
use ferrite::backend::tuning::cache::TuneCache;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("ferrite-fuzz-{}.json", std::process::id()));
    std::fs::write(&path, bytes).expect("the folder of temporary files can be written");
    let _ = TuneCache::read(&path);
});
