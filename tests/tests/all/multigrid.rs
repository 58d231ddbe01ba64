//! Multigrid on the CPU.
use ferrite::backend::Cpu;
use ferrite_tests::checks;
use ferrite_tests::report::Report;

#[test]
fn levels_belong_together() {
    let mut report = Report::default();
    checks::multigrid(&Cpu::new(None), &mut report).unwrap();
    report.assert_passed();
}

#[test]
fn solves_end_at_their_tolerance() {
    let mut report = Report::default();
    checks::multigrid_solves(&Cpu::new(None), &mut report).unwrap();
    report.assert_passed();
}
