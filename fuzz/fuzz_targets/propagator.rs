//! The file beside a kept propagator that says what it is.
#![no_main]
mod room;

use libfuzzer_sys::fuzz_target;
use room::Room;
use std::sync::LazyLock;

const INPUT: &str = "\
configurations = [\"u.ildg\"]
propagators = \"kept\"
[solve]
operator = \"staggered\"
mass = 1.0
tol = 1e-3
";

static ROOM: LazyLock<Room> = LazyLock::new(|| {
    let room = Room::new();
    room.put("pion.toml", INPUT.as_bytes());
    // The propagator itself.
    room.run("spectrum pion.toml --out pion");
    room
});

fuzz_target!(|bytes: &[u8]| {
    ROOM.put("kept/u.ildg.json", bytes);
    ROOM.clear("pion");
    ROOM.run("spectrum pion.toml --out pion");
});
