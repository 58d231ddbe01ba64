//! Lists of operators and methods with their parameters, for interfaces of other languages.
use crate::parameters::{name_of, reworded};
use ferrite::FermionKind;
use ferrite::operators::{Definition, Key, KeyKind, OPERATORS};
use ferrite::solve::{METHODS, Method};
use ferrite_records::operator::{OperatorEntry, ParameterEntry};
use ferrite_records::solve::MethodEntry;

/// Returns a catalogue entry for each operator, with the parameters of the operator.
pub fn operators() -> Vec<OperatorEntry> {
    let one = |definition: &&'static Definition| OperatorEntry {
        name: definition.name.into(),
        title: definition.title.into(),
        formula: definition.formula.into(),
        staggered: definition.kind == FermionKind::Staggered,
        parameters: definition.all_keys().map(parameter).collect(),
    };
    OPERATORS.iter().map(one).collect()
}

/// Returns a catalogue entry for each solution method.
pub fn methods() -> Vec<MethodEntry> {
    let one = |method: &&'static Method| {
        let fits = |kind| method.kinds.contains(&kind);
        let ([title, title_staggered], wilson) = (method.titles, fits(FermionKind::Wilson));
        MethodEntry {
            name: method.name.into(),
            title: if wilson { title } else { title_staggered }.into(),
            help: method.help.into(),
            wilson,
            staggered: fits(FermionKind::Staggered),
        }
    };
    METHODS.iter().map(one).collect()
}

fn parameter(key: &Key) -> ParameterEntry {
    let kind = match key.kind {
        KeyKind::Number => "number",
        KeyKind::Count => "count",
        KeyKind::Switch => "switch",
        KeyKind::Extents | KeyKind::Sites | KeyKind::Numbers | KeyKind::Fractions => "numbers",
        KeyKind::Text | KeyKind::Texts => "text",
        // A word whose example is not quoted may be a number, such as a tadpole factor.
        KeyKind::Word if key.example.starts_with('"') => "text",
        KeyKind::Word => "text or number",
    };
    ParameterEntry {
        name: name_of(key.name),
        kind: kind.into(),
        help: reworded(key.help),
        default: key.default.map(String::from),
    }
}
