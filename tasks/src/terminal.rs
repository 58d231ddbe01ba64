//! Output of all text on standard output and standard error.
//!
//! Names of files, titles in files and texts of inputs may contain control characters. A terminal would obey these, and they could hide
//! parts of a message or do harm. All output therefore goes through [`printable`]; the compiler refuses `println!` and similar macros
//! elsewhere.
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns whether a terminal prints this character; line ends and tabs also count.
fn is_printed(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        // These characters change the order in which the text around them is displayed.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => false,
        c => !c.is_control(),
    }
}

/// Returns a text whose control characters are escaped as in JSON, such as `\u001b`. JSON has such characters only within strings, so its
/// meaning does not change.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printed) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_printed(c) {
            safe.push(c);
        } else {
            // The code points of all escaped characters fit in 16 bits.
            let _ = write!(safe, "\\u{:04x}", u32::from(c));
        }
    }
    safe.into()
}

/// Prints a text through [`printable`], and flushes it.
pub fn print(mut to: impl Write, text: &str) -> io::Result<()> {
    to.write_all(printable(text).as_bytes()).and_then(|()| to.flush())
}

/// Prints a text on standard error. Errors are ignored: if standard error is closed, there is nowhere to report them.
pub fn say(text: &str) {
    let _ = print(io::stderr().lock(), text);
}

/// Whether standard output is an output file of the command.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Sends results to standard error from now on, because the command writes a file to standard output.
pub fn take_stdout() {
    IS_TAKEN.store(true, Ordering::Relaxed);
}

/// Returns whether standard output is an output file of the command.
pub fn stdout_is_taken() -> bool {
    IS_TAKEN.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_of_a_text() {
        for plain in ["", "β = 6, 8⁴\n\tψ̄ψ", "\"a\" \\ b"] {
            assert!(matches!(printable(plain), Cow::Borrowed(same) if same == plain));
        }
        assert_eq!(
            printable("a\u{1b}[2Jb\r\u{7f}\u{9b}1m\u{202e}c\0\n"),
            "a\\u001b[2Jb\\u000d\\u007f\\u009b1m\\u202ec\\u0000\n"
        );
        for code in 0..=0x1_ffff {
            if let Some(c) = char::from_u32(code) {
                let shown = printable(c.encode_utf8(&mut [0; 4])).into_owned();
                assert!(shown.chars().all(is_printed));
                // As JSON reads it, it is the same.
                if !is_printed(c) {
                    assert_eq!(serde_json::from_str::<String>(&format!("\"{shown}\"")).unwrap(), c.to_string());
                }
            }
        }
    }
}
