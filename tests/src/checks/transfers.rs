//! Copies between host and device.
use crate::report::{CheckReport, Scope};
use ferrite::backend::{Backend, Result};

/// Bytes at offsets; backends may do long copies in pieces.
const COPIES: [(usize, usize); 5] =
    [(1, 0), (4097, 16), (64 << 20, 48), ((64 << 20) + 1, 0), ((83 << 20) + 4 * 4099, 4096)];

/// Numbers that repeat after a length that no piece has.
fn data(bytes: usize, seed: usize) -> Vec<u8> {
    (0..bytes).map(|k| ((k + seed) % 251) as u8 ^ ((k + seed) / 251 % 241) as u8).collect()
}

/// Checks that bytes copied to the device come back, and that nothing beside them changes.
pub fn transfers(backend: &dyn Backend, report: &mut CheckReport) -> Result {
    for (bytes, offset) in COPIES {
        let mut buffer = backend.allocate(offset + bytes + 64, "a check of copies")?;
        let expected = data(bytes, 1);
        // Changed at once, and copied again: that must not reach the first copy.
        let mut sent = expected.clone();
        let mut other = backend.allocate(bytes, "a check of copies")?;
        backend.upload(&sent, &mut buffer, offset)?;
        sent.fill(0xff);
        backend.upload(&sent, &mut other, 0)?;
        let mut found = vec![0; bytes];
        backend.download(&buffer, offset, &mut found)?;
        let mut around = vec![1; 64];
        backend.download(&buffer, offset + bytes, &mut around)?;
        let mut before = vec![1; offset];
        backend.download(&buffer, 0, &mut before)?;
        let scope = Scope { format: "bytes".into(), detail: format!("{bytes} at {offset}, {}", backend.name()) };
        report.holds(&scope, "what was copied comes back", found == expected);
        report.holds(&scope, "nothing beside it changes", around.iter().chain(&before).all(|byte| *byte == 0));
        backend.download(&other, 0, &mut found)?;
        report.holds(&scope, "a second copy is its own", found == sent);
    }
    Ok(())
}
