//! `correlators.jsonl` of a spectrum, as `ferrite report` and, to go on from it, `ferrite spectrum` read it.
#![no_main]
mod room;

use libfuzzer_sys::fuzz_target;
use room::Room;
use std::sync::LazyLock;

static ROOM: LazyLock<Room> = LazyLock::new(Room::new);

fuzz_target!(|bytes: &[u8]| {
    ROOM.put("spectrum/correlators.jsonl", bytes);
    ROOM.run("report spectrum -o page.html");
});
