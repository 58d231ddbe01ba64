//! Inputs in TOML of `ferrite solve`, `rhmc` and `spectrum`: their tables tell which one it is.
#![no_main]
mod room;

use libfuzzer_sys::fuzz_target;
use room::Room;
use std::sync::LazyLock;

static ROOM: LazyLock<Room> = LazyLock::new(Room::new);

fuzz_target!(|bytes: &[u8]| {
    ROOM.put("run.toml", bytes);
    ROOM.run("check run.toml --json");
});
