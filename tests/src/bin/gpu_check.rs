//! Runs every check of kernels and solves on GPU 0, against the reference and against the CPU, and prints a table.
//! Names of groups as arguments choose these (an unknown one lists them).
//! The last line is `N passed, N failed`; the exit code is 1 if something failed. Without a GPU it says so.
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let start = Instant::now();
    match ferrite_tests::gpu::check(&std::env::args().skip(1).collect::<Vec<_>>()) {
        None => {
            println!("0 passed, 0 failed");
            ExitCode::SUCCESS
        }
        Some(Err(reason)) => {
            println!("stopped: {reason}\n0 passed, 1 failed");
            ExitCode::FAILURE
        }
        Some(Ok(report)) => {
            print!("{}", report.table());
            report.failures().take(40).for_each(|failure| println!("FAILED {failure}"));
            println!("{:.1} s", start.elapsed().as_secs_f64());
            let failed = report.failures().count();
            println!("{} passed, {failed} failed", report.outcomes.len() - failed);
            if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
    }
}
