//! What `ferrite report` reads besides folders: output of other commands, points, timelines.
#![no_main]
mod room;

use libfuzzer_sys::fuzz_target;
use room::Room;
use std::sync::LazyLock;

static ROOM: LazyLock<Room> = LazyLock::new(Room::new);

fuzz_target!(|bytes: &[u8]| {
    ROOM.put("input.json", bytes);
    ROOM.run("report input.json -o page.html");
});
