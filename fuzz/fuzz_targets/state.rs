//! `state.toml`, from which a run of `ferrite rhmc` goes on. The run that is asked for is over already.
#![no_main]
mod room;

use libfuzzer_sys::fuzz_target;
use room::Room;
use std::sync::LazyLock;

const INPUT: &str = include_str!("../rhmc.toml");

static ROOM: LazyLock<Room> = LazyLock::new(|| {
    let room = Room::new();
    room.put("rhmc.toml", INPUT.as_bytes());
    room.run("rhmc rhmc.toml --out run");
    room
});

fuzz_target!(|bytes: &[u8]| {
    // As it is, and with the checksum that it should have: few get past that by chance.
    let seal = format!("crc32 = \"{:08x}\"\n", crc32fast::hash(bytes));
    for end in ["", &seal] {
        ROOM.put("run/state.toml", &[bytes, end.as_bytes()].concat());
        ROOM.run("rhmc rhmc.toml --out run --resume");
    }
});
