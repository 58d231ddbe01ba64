//! Notes and warnings on standard error, through `tracing`.
use super::{progress, terminal};
use std::fmt;
use std::io::Write;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, Layer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

/// Formatter of log lines with a word in front, as in `warning: …` and `note: …`.
struct PlainLines;

impl<S: Subscriber + for<'a> LookupSpan<'a>, N: for<'a> FormatFields<'a> + 'static> FormatEvent<S, N> for PlainLines {
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let word = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            Level::INFO => "note",
            Level::DEBUG => "info",
            Level::TRACE => "debug",
        };
        write!(writer, "{word}: ")?;
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// Standard error for complete lines, which appear above the progress bar if there is one.
struct AroundBar;

impl Write for AroundBar {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        progress::beside(|| terminal::print(std::io::stderr(), &text)).map(|()| bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

/// Starts logging. Warnings and notes are shown by default; `-v` adds details, and `-q` leaves only errors.
pub fn start(verbose: u8, quiet: bool) {
    let level = match (quiet, verbose) {
        (true, _) => LevelFilter::ERROR,
        (_, 0) => LevelFilter::INFO,
        (_, 1) => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let layer = Layer::default().event_format(PlainLines).with_ansi(false).with_writer(|| AroundBar);
    let subscriber = tracing_subscriber::registry().with(level).with(layer);
    // The call fails only if the process has another subscriber already. That subscriber then receives the events.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
