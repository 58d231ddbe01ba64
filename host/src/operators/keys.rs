//! Parameters in the form in which users give them: as keys of input files or as flags of commands.

/// Type of the value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// Any text.
    Text,
    /// One or several texts.
    Texts,
    /// A real number.
    Number,
    /// A whole number.
    Count,
    /// One word of a list, which may look like a number (`reconstruct = 12`).
    Word,
    /// True or false.
    Switch,
    /// Four numbers, as a text or an array.
    Extents,
    /// One or several sites, each as four numbers: an array of arrays or of texts.
    Sites,
    /// One or several numbers, as a text or an array.
    Numbers,
    /// One or several numbers or fractions, which are texts.
    Fractions,
}

/// Parameter of an operator or of a solve, which is a flag of commands and a key of input files.
#[derive(Debug)]
pub struct Key {
    /// Name of the key.
    pub name: &'static str,
    /// Placeholder of the value in help texts.
    pub value: &'static str,
    /// Type of the value.
    pub kind: KeyKind,
    /// Description for help texts, in a sentence or two.
    pub help: &'static str,
    /// Example of a value, in the form of input files.
    pub example: &'static str,
    /// Default value; `None` if there is none, or if it depends on other settings.
    pub default: Option<&'static str>,
    /// Name of the key to which this one is an alternative.
    pub instead_of: Option<&'static str>,
    /// Whether solutions depend on the value only through rounding errors.
    pub technical: bool,
}

impl Key {
    /// Makes a key that has no default value and on whose value solutions depend.
    pub const fn new(
        name: &'static str,
        value: &'static str,
        kind: KeyKind,
        help: &'static str,
        example: &'static str,
    ) -> Self {
        Key { name, value, kind, help, example, default: None, instead_of: None, technical: false }
    }
    /// Sets the default value.
    #[must_use]
    pub const fn or(self, default: &'static str) -> Self {
        Key { default: Some(default), ..self }
    }
    /// Marks the key as an alternative to the key `other`.
    #[must_use]
    pub const fn instead_of(self, other: &'static str) -> Self {
        Key { instead_of: Some(other), ..self }
    }
    /// Marks the key as one on whose value solutions depend only through rounding errors.
    #[must_use]
    pub const fn technical(self) -> Self {
        Key { technical: true, ..self }
    }
}

/// Parameters as the user typed them, by the names of [`Key`]s. Implementations collect the errors.
pub trait Keys {
    /// Whether the key has a value.
    fn is_given(&self, key: &str) -> bool;
    /// Returns a finite number that satisfies `fits`; `expected` describes the condition.
    fn number(&mut self, key: &'static str, expected: &str, fits: &dyn Fn(f64) -> bool) -> Option<f64>;
    /// Returns the index of the typed word in the list of possible words.
    fn word(&mut self, key: &'static str, words: &[&'static str]) -> Option<usize>;
    /// Passes the value as typed to `parse`, which returns an error if the value is invalid.
    fn parse(&mut self, key: &'static str, parse: &mut dyn FnMut(&str) -> std::result::Result<(), String>);
    /// Whether a switch is on.
    fn is_on(&mut self, key: &'static str) -> bool;
    /// Records that a value is wrong.
    fn refuse(&mut self, key: &str, why: &str);
    /// Records that a value does not fit that of another key.
    fn conflict(&mut self, key: &str, other: &str, why: &str);
    /// Records that a value is missing.
    fn missing(&mut self, why: &str);
    /// Returns how users give a key a value, for advice: `mass = M` in an input file, `--mass M` as a flag.
    fn spelled(&self, key: &str, value: &str) -> String;
}

/// Largest absolute value of a number that users may give. Numbers up to this bound do not overflow in computations, and no lattice
/// parameter comes near it.
pub const LARGEST: f64 = 1e9;
/// Smallest divisor that users may give: one over [`LARGEST`].
pub const SMALLEST: f64 = 1e-9;
/// Description, for messages, of the numbers that [`is_divisor`] accepts.
pub const DIVISOR: &str = "a number of at least 1e-9";

/// Whether a number may be used as a divisor, which must be at least [`SMALLEST`].
pub fn is_divisor(x: f64) -> bool {
    x >= SMALLEST
}

/// Returns the value that `choices` assigns to the word typed for `key`; `None` if the key is missing or invalid.
pub fn choose<T: Copy>(keys: &mut dyn Keys, key: &'static str, choices: &[(&'static str, T)]) -> Option<T> {
    let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
    keys.word(key, &words).map(|place| choices[place].1)
}
