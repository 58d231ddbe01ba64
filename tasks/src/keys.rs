//! Keys of a solve and of similar tasks. One table makes the keys of input files, the flags of the program with their help, and the input
//! that `ferrite init` prints. Operators and methods define their own keys.
use crate::device::DeviceKeys;
use crate::layout::LayoutKeys;
use ferrite::FermionKind;
use ferrite::operators::{Definition, Key, KeyKind, OPERATORS};
use ferrite::solve::{METHODS, Method, methods_for};
use ferrite_inputs::{InputKind, Schema};
use std::sync::LazyLock;

/// Section of keys in help texts and inputs.
pub struct KeySection {
    /// Heading of the flags in help texts.
    pub heading: Option<&'static str>,
    /// Comment above the keys in an input.
    pub comment: String,
    /// Keys of the section.
    pub keys: Vec<&'static Key>,
}

macro_rules! keys {
    ($($(#[$doc:meta])* $constant:ident: $kind:ident $name:literal $value:literal $help:literal, $example:literal;)*) => {
        $(static $constant: Key = Key::new($name, $value, KeyKind::$kind, $help, $example);)*
    };
}

keys! {
    GAUGE: Text "gauge" "FILE" "Gauge configuration, in any supported format", "\"weak.ildg\"";
    FAT: Text "fat" "FILE" "Fat links, from `ferrite links` or MILC; give --fat and --long instead of --gauge",
        "\"fat.scidac\"";
    LONG: Text "long" "FILE" "Long links, from `ferrite links` or MILC; give --fat and --long instead of --gauge", "\"long.scidac\"";
    LATTICE: Extents "lattice" "X,Y,Z,T" "Lattice extents, for a gauge file that does not contain them", "[16, 16, 16, 32]";
    RECORD: Count "record" "N" "Number of the field in a LIME file that contains several, from 0 [default: 0]", "0";
    NO_VERIFY: Switch "no-verify" ""
        "Accept a file whose checksum, plaquette, link trace or length differs from its header", "false";
    ALLOW_NON_UNITARY: Switch "allow-non-unitary" "" "Accept links that are not in SU(3)", "false";
    REUNITARISE: Switch "reunitarise" "" "Project the links to SU(3) after reading", "false";
    STOUT_RHO: Number "stout-rho" "RHO"
        "Weight rho of a staple for stout smearing of the links before the operator is built, 0 to 0.25", "0.1";
    STOUT_LEVELS: Count "stout-levels" "N" "Number of stout smearing steps [default: 1]", "2";
    STOUT_SPATIAL: Switch "stout-spatial" "" "Smear only links in x, y and z, with staples in these directions", "false";
    MASSES: Numbers "masses" "M1,M2,..." "Several masses, separated by commas, instead of --mass", "[0.02, 0.05]";
    SHIFT_SOLVER: Word "shift-solver" "NAME"
        "Solver for several masses or shifts: multishift (all together, then refined one by one) or sequential \
         [default: multishift]",
        "\"multishift\"";
    SOURCE: Texts "source" "SOURCE"
        "Source: point:x,y,z,t,spin,colour (without spin for staggered operators), random:SEED (noise vector 0 of the \
         seed), random:SEED,NUMBER (another noise vector of the seed), or file:PATH; repeat --source for several \
         right-hand sides",
        "[\"point:0,0,0,0,0,0\", \"random:1\"]";
    SOURCES: Count "sources" "N"
        "Number of right-hand sides from one source: up to 12 components of point:x,y,z,t (up to 3 for staggered \
         quarks), or noise vectors of random:SEED", "12";
    BATCH: Count "batch" "N"
        "Number of right-hand sides to solve together, 1 to 64 [default: up to 16, as many as memory allows]", "16";
    GUESS: Text "guess" "FILE" "File of initial guesses, such as .npy or .lime, with one field for each source", "\"guess.npy\"";
    PRECISION: Word "precision" "NAME"
        "Precision of fields and links: double, single, half, or fp16 (for wilson, clover and exp-clover) [default of \
         a solve: half for Wilson-like operators on a GPU, otherwise single; double for multi-shift CG on a CPU and for apply]",
        "\"half\"";
    RECONSTRUCT: Word "reconstruct" "N"
        "Number of reals stored for a link: 18, 12 or 8; for wilson, clover and exp-clover also 12t or 8t (temporal \
         gauge); for long links of HISQ also 13 or 9; for staggered operators also 18h, 12h, 8h, 13h or 9h (16-bit \
         links, fields in single precision); for asqtad and HISQ also 13f or 9f (the same with fat links of 21 bits, \
         for light quarks) [default: 12 if the links are in SU(3), otherwise 18; for HISQ 13, and 18 for a solve on a CPU; \
         without a precision, on a GPU, 12h for staggered, 8h or 9h for asqtad and HISQ, and 9f for these below mass 0.015]",
        "12";
    OUTPUT: Text "output" "FILE"
        "File for the result: .npy, or .lime for one field or a propagator (docs/formats.md lists other endings)",
        "\"solution.npy\"";
    SAVE_SOURCE: Text "save-source" "FILE"
        "File for the sources: .npy, or .lime for one field or a propagator (docs/formats.md lists other endings)",
        "\"source.npy\"";
    PLOT: Text "plot" "FILE.svg" "Plot the residual against the iteration", "\"convergence.svg\"";
    KEEP_UNCONVERGED: Switch "keep-unconverged" "" "Write the best iterate even if it has not converged", "false";
    PROFILE: Switch "profile" "" "Report the time of each kernel; the solve takes a little longer", "false";
    TOL: Number "tol" "TOL"
        "Requested tolerance of |b - M x| / |b|, or with --shifts of |b - (M^+ M + s) x| / |b| [default: 1e-10]", "1e-10";
    MAX_ITERATIONS: Count "max-iterations" "N" "Maximum number of iterations [default: 10000, and more for light staggered quarks]", "10000";
    OUTER: Word "outer" "NAME"
        "Precision of the solution and of the residuals that correct the iteration: double or single; single needs \
         --precision single, half or fp16, and suits --tol above 1e-6 [default: double]",
        "\"double\"";
    CORRECTION: Word "correction" "NAME"
        "Correction of the iteration by true residuals: reliable (reliable updates within one Krylov space) or defect \
         (defect correction by inner solves) [default: reliable]", "\"reliable\"";
    DELTA: Number "delta" "D"
        "Factor by which the residual falls between true residuals, for reliable updates and restarts of gcr-dd and \
         multigrid [default: 0.1; 0.6 for light staggered quarks in 16 bits; 1e-3 for multigrid in single precision; for \
         reliable updates with equal --precision and --outer, 1e-4, or 0 if links have 18 reals]", "0.1";
    INNER_TOL: Number "inner-tol" "TOL"
        "Relative residual at which an inner solve of defect correction ends [default: 0.01]", "0.01";
    NO_ESCALATION: Switch "no-escalation" ""
        "Fail if the solver stagnates or breaks down, instead of continuing in a higher precision or with another \
         solver", "false";
}

static SHIFTS: Key = Key::new(
    "shifts",
    "S1,S2,...",
    KeyKind::Numbers,
    "Solve (M^+ M + s) x = b for these shifts s, separated by commas",
    "[0.01, 0.1]",
)
.instead_of("masses");

/// Returns the names of all operators: `wilson, clover, staggered, asqtad or hisq`.
pub fn operator_names() -> String {
    alternatives(OPERATORS.iter().map(|definition| definition.name))
}

/// Joins words as `a, b or c`.
pub fn alternatives<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    match words.as_slice() {
        [] => String::new(),
        [one] => (*one).into(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Key `operator`, whose help text lists all operators.
static OPERATOR: LazyLock<Key> = LazyLock::new(|| {
    let help = format!("Dirac operator: {} [default: wilson]", operator_names());
    Key::new("operator", "NAME", KeyKind::Word, Box::leak(help.into_boxed_str()), "\"clover\"")
});

/// Key `solver`, whose help text lists all methods.
static SOLVER: LazyLock<Key> = LazyLock::new(|| {
    let described = |method: &Method| match method.help {
        "" => method.name.to_string(),
        help => format!("{} ({help})", method.name),
    };
    let all: Vec<String> = METHODS.into_iter().map(described).collect();
    let [wilson, staggered] = [FermionKind::Wilson, FermionKind::Staggered].map(methods_for);
    let help = format!(
        "Solver: {}; for staggered operators {} [default: {}, or {} for staggered operators]",
        alternatives(all.iter().map(String::as_str)),
        alternatives(staggered.iter().map(|(name, _)| *name)),
        wilson[0].0,
        staggered[0].0
    );
    Key::new("solver", "NAME", KeyKind::Word, Box::leak(help.into_boxed_str()), "\"auto\"")
});

/// Returns the operators that have the key `key`.
pub fn owners(key: &str) -> impl Iterator<Item = &'static Definition> {
    OPERATORS.into_iter().filter(move |definition| definition.has_key(key))
}

/// Returns the keys of all operators, each once. Keys without a heading, which several kinds of operators have, come first.
fn operator_keys() -> Vec<(Option<&'static str>, &'static Key)> {
    let mut all: Vec<(Option<&'static str>, &'static Key)> = Vec::new();
    for key in OPERATORS.iter().flat_map(|definition| definition.all_keys()) {
        if all.iter().all(|(_, known)| known.name != key.name) {
            all.push((heading(key), key));
        }
    }
    all.sort_by_key(|(heading, _)| *heading);
    all
}

/// Returns the heading of an operator's key in help texts; `None` for keys of all Wilson-like operators or of both kinds.
fn heading(key: &Key) -> Option<&'static str> {
    let is = |kind| move |definition: &&Definition| definition.kind == kind;
    let of = |kind| owners(key.name).filter(move |definition| definition.kind == kind).count();
    match (of(FermionKind::Wilson), of(FermionKind::Staggered)) {
        (0, _) => Some("Staggered operators"),
        (some, 0) if some < OPERATORS.iter().copied().filter(is(FermionKind::Wilson)).count() => {
            Some("Terms of Wilson-like operators")
        }
        _ => None,
    }
}

/// Keys of the configuration, the operator and its fields, for `solve` and `apply`.
pub static FIELDS: LazyLock<Vec<KeySection>> = LazyLock::new(|| {
    let section = |heading, comment: &str, keys: &[&'static Key]| KeySection {
        heading,
        comment: comment.into(),
        keys: keys.to_vec(),
    };
    let of = |wanted| operator_keys().into_iter().filter(move |(heading, _)| *heading == wanted).map(|(_, key)| key);
    let mut operator = section(None, "The operator.", &[&OPERATOR]);
    operator.keys.extend(of(None));
    let terms = Some("Terms of Wilson-like operators");
    let mut wilson = section(terms, "Terms of Wilson-like operators.", &[]);
    wilson.keys.extend(of(terms));
    let staggered = Some("Staggered operators");
    let mut links = section(staggered, "Keys of staggered operators.", &[&FAT, &LONG]);
    links.keys.extend(of(staggered));
    vec![
        section(None, "The configuration.", &[&GAUGE]),
        section(
            Some("Reading the configuration"),
            "Reading the configuration.",
            &[&LATTICE, &RECORD, &NO_VERIFY, &ALLOW_NON_UNITARY, &REUNITARISE],
        ),
        section(Some("Stout links"), "Stout links.", &[&STOUT_RHO, &STOUT_LEVELS, &STOUT_SPATIAL]),
        operator,
        wilson,
        links,
        section(None, "Right-hand sides.", &[&SOURCE, &SOURCES]),
        section(None, "Formats of fields and links, and the result.", &[&PRECISION, &RECONSTRUCT, &OUTPUT]),
    ]
});

/// Keys of `solve` that `apply` does not have.
static SOLVING: LazyLock<Vec<KeySection>> = LazyLock::new(|| {
    let section = |heading, comment: &str, keys: &[&'static Key]| KeySection {
        heading,
        comment: comment.into(),
        keys: keys.to_vec(),
    };
    let owners = METHODS.iter().filter(|method| !method.is_choice() && !method.keys.is_empty());
    let of_methods = owners.map(|owner| section(owner.heading, &format!("Keys of {}.", owner.name), owner.keys));
    let before = [
        section(None, "The solver.", &[&SOLVER, &TOL, &MAX_ITERATIONS, &GUESS, &BATCH]),
        section(
            Some("Mixed precision"),
            "Mixed precision.",
            &[&OUTER, &CORRECTION, &DELTA, &INNER_TOL, &NO_ESCALATION],
        ),
    ];
    let after = [
        section(
            Some("Staggered operators"),
            "Several masses or shifts of a staggered operator.",
            &[&MASSES, &SHIFTS, &SHIFT_SOLVER],
        ),
        section(None, "Other output.", &[&SAVE_SOURCE, &PLOT, &KEEP_UNCONVERGED, &PROFILE]),
    ];
    before.into_iter().chain(of_methods).chain(after).collect()
});

/// Returns all sections of keys of a solve, in the order of an input.
pub fn sections() -> impl Iterator<Item = &'static KeySection> {
    FIELDS.iter().chain(SOLVING.iter())
}

/// Adds the keys of the device and of the process grid, which every input has.
pub fn with_every_input(schema: Schema) -> Schema {
    schema.with::<DeviceKeys>("").with::<LayoutKeys>("")
}

/// Schema with the keys that every input has.
pub static EVERY_INPUT: LazyLock<Schema> = LazyLock::new(|| with_every_input(Schema::new(None)));

/// Schema with all keys of a solve.
pub static SOLVE: LazyLock<Schema> = LazyLock::new(|| {
    let keys = sections().flat_map(|section| &section.keys).map(|key| (key.name, key.kind));
    with_every_input(Schema::new(Some(InputKind::Solve)).with_keys("", keys))
});

/// Keys that only staggered operators accept, except the parameters of these operators.
pub const STAGGERED_KEYS: [&str; 5] = ["masses", "shifts", "shift-solver", "fat", "long"];

/// Keys on which a solution depends, except the keys of operators.
const PHYSICS: [&str; 7] = ["operator", "record", "reunitarise", "stout-rho", "stout-levels", "stout-spatial", "tol"];

/// Returns all keys on which a solution depends.
pub fn physics() -> impl Iterator<Item = &'static str> {
    let of_operators = OPERATORS.iter().flat_map(|definition| definition.all_keys()).filter(|key| !key.technical);
    PHYSICS.into_iter().chain(of_operators.map(|key| key.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::SolverKeys;
    use crate::multigrid::MultigridKeys;
    use crate::plan::{FieldKeys, OperatorKey, ReadingKeys, SystemKeys};
    use crate::schwarz::SchwarzKeys;
    use crate::solve::OutputKeys;
    use crate::stout::StoutKeys;

    /// Whatever is declared as a key of a solve is read, under the same name and kind, and the other way round.
    #[test]
    fn keys_of_a_solve_are_those_that_are_read() {
        let read = with_every_input(Schema::new(None))
            .with::<ReadingKeys>("")
            .with::<FieldKeys>("")
            .with::<OperatorKey>("")
            .with::<SystemKeys>("")
            .with::<StoutKeys>("")
            .with::<SolverKeys>("")
            .with::<SchwarzKeys>("")
            .with::<MultigridKeys>("")
            .with::<OutputKeys>("");
        for (name, kind) in read.keys() {
            assert_eq!(SOLVE.kind_of(name), Some(kind), "{name}");
        }
        let of_methods =
            |name: &str| METHODS.iter().flat_map(|method| method.counts).any(|count| count.key.name == name);
        let of_definitions = |name: &str| owners(name).next().is_some() || of_methods(name);
        for (name, _) in SOLVE.keys().filter(|(name, _)| !of_definitions(name)) {
            assert!(read.kind_of(name).is_some(), "{name} is not read");
        }
    }
}
