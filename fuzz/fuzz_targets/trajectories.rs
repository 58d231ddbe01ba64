//! `trajectories.jsonl` of a run, as `ferrite report` reads it.
#![no_main]
mod room;

use libfuzzer_sys::fuzz_target;
use room::Room;
use std::sync::LazyLock;

static ROOM: LazyLock<Room> = LazyLock::new(Room::new);

fuzz_target!(|bytes: &[u8]| {
    ROOM.put("run/trajectories.jsonl", bytes);
    ROOM.run("report run -o page.html");
});
