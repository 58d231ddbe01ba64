//! Figures 4 to 9 of the paper.
use super::study::{Row, Size, Study};
use crate::cli::{Failure, Outcome};
use crate::plot::compared::{Compared, Values, write_compared};
use crate::plot::{Line, Lines, write_lines};
use std::path::PathBuf;

/// Draws all, and answers with the files.
pub fn write(study: &Study, rows: &[Row]) -> Outcome<Vec<PathBuf>> {
    let path = |number: u32| study.folder().join(format!("figure-{number}.svg"));
    let (small, large) = (of(rows, Size::Small), of(rows, Size::Large));
    let compared = [
        (4, "Observables in all settings of precision", Size::Small, observables(&small)),
        (5, "Irreversibility in all settings of precision", Size::Small, irreversibility(&small)),
        (6, "Energy differences in all settings of precision", Size::Small, vec![delta(&small)]),
        (7, "Irreversibility in all settings of precision", Size::Large, irreversibility(&large)),
        (9, "Metropolis steps in all settings of precision", Size::Large, vec![acceptance(&large), delta(&large)]),
    ];
    let mut files = Vec::new();
    for (number, title, size, panels) in compared {
        let plot = Compared {
            title: title.into(),
            subtitle: format!("{}, {}", study.lattice(size), study.title()),
            places: of(rows, size).iter().map(|row| row.setting.name.clone()).collect(),
            horizontal: None,
            panels,
        };
        write_compared(&path(number), &plot).map_err(Failure::failed)?;
        files.push(path(number));
    }
    write_lines(&path(8), &updates(study, rows)).map_err(Failure::failed)?;
    files.push(path(8));
    files.sort();
    Ok(files)
}

fn of(rows: &[Row], size: Size) -> Vec<&Row> {
    rows.iter().filter(|row| row.size == size).collect()
}

fn panel(rows: &[&Row], axis: &str, logarithmic: bool, value: impl Fn(&Row) -> [f64; 2]) -> Values {
    Values { axis: axis.into(), logarithmic, at: rows.iter().map(|row| value(row)).collect(), range: None }
}

fn observables(rows: &[&Row]) -> Vec<Values> {
    let one = |which: usize, axis| panel(rows, axis, false, move |row: &Row| row.observables[which]);
    vec![one(0, "plaquette"), one(1, "Re Polyakov loop"), one(2, "condensate")]
}

fn irreversibility(rows: &[&Row]) -> Vec<Values> {
    let one = |which: usize, axis| panel(rows, axis, true, move |row: &Row| row.irreversibility[which]);
    vec![one(0, "links"), one(1, "momenta")]
}

fn delta(rows: &[&Row]) -> Values {
    panel(rows, "delta H", false, |row: &Row| row.delta)
}

fn acceptance(rows: &[&Row]) -> Values {
    panel(rows, "accepted", false, |row: &Row| row.accepted)
}

/// Figure 8: irreversibility of the links against the number of their updates, settings with links in single precision.
fn updates(study: &Study, rows: &[Row]) -> Lines {
    let line = |size: Size| Line {
        name: format!("{}", study.lattice(size)),
        points: of(rows, size)
            .into_iter()
            .filter(|row| !row.has_double_links())
            .map(|row| (row.updates as f64, 1e6 * row.irreversibility[0][0]))
            .collect(),
        dashed: false,
        marks: true,
    };
    Lines {
        title: "Irreversibility of the links against gauge updates".into(),
        subtitle: study.title(),
        axes: ["moves of the links in a trajectory".into(), "irreversibility / 1e-6".into(), String::new()],
        logarithmic: [false; 2],
        lines: vec![line(Size::Small), line(Size::Large)],
    }
}
