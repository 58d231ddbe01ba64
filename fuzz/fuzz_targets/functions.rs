//! `functions.json`, the rational functions of `ferrite rhmc --replay`. The run has no trajectory.
#![no_main]
mod room;

use libfuzzer_sys::fuzz_target;
use room::Room;
use std::sync::LazyLock;

const INPUT: &str = include_str!("../rhmc.toml");

static ROOM: LazyLock<Room> = LazyLock::new(|| {
    let room = Room::new();
    room.put("rhmc.toml", INPUT.as_bytes());
    // They have to be there, and are not read.
    for name in ["momenta.1.npy", "pseudofermions.1.0.npy"] {
        room.put(&format!("replay/{name}"), b"");
    }
    room
});

fuzz_target!(|bytes: &[u8]| {
    ROOM.put("replay/functions.json", bytes);
    ROOM.clear("run");
    ROOM.run("rhmc rhmc.toml --out run --replay replay");
});
