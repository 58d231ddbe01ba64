//! Kinds of values of keys, and their conversion from the typed form.
use crate::numbers;
pub use crate::raw::Raw;
use crate::raw::joined;
use crate::text;
use ferrite::lattice::Lattice;
pub use ferrite::operators::KeyKind as Kind;
use ferrite::operators::{DIVISOR, is_divisor};
use std::marker::PhantomData;

/// Type of a key's value. Types that implement this are markers; the values are of type [`Out`](Self::Out).
pub trait Value {
    /// Type of the values.
    type Out;
    /// Kind of the values, which determines their treatment by flags, files and advice.
    const KIND: Kind;
    /// Converts the typed value.
    ///
    /// # Errors
    /// Returns what is wrong. A message that begins with `is ` is preceded by the value as typed, one that begins with
    /// `#3 is ` by the fourth value of a list.
    fn of(raw: &Raw) -> Result<Self::Out, String>;
}

/// Any text.
#[derive(Debug)]
pub struct Text;
impl Value for Text {
    type Out = String;
    const KIND: Kind = Kind::Text;
    fn of(raw: &Raw) -> Result<String, String> {
        text_of(raw).map(String::from)
    }
}

/// Element of a list of texts.
#[derive(Debug)]
pub struct Item;
impl Value for Item {
    type Out = String;
    const KIND: Kind = Kind::Texts;
    fn of(raw: &Raw) -> Result<String, String> {
        text_of(raw).map(String::from)
    }
}

fn text_of(raw: &Raw) -> Result<&str, String> {
    match raw {
        Raw::Text(text) => Ok(text),
        _ => Err("is not a text".into()),
    }
}

/// True or false.
#[derive(Debug)]
pub struct Switch;
impl Value for Switch {
    type Out = bool;
    const KIND: Kind = Kind::Switch;
    fn of(raw: &Raw) -> Result<bool, String> {
        match raw {
            Raw::Switch(on) => Ok(*on),
            Raw::Text(text) if text == "true" => Ok(true),
            Raw::Text(text) if text == "false" => Ok(false),
            _ => Err("is none of true, false".into()),
        }
    }
}

/// Words with their meanings.
pub trait Vocabulary {
    /// Type of the meanings.
    type Meaning: Copy;
    /// Returns all words.
    fn words() -> Vec<(&'static str, Self::Meaning)>;
}

/// Word of a vocabulary.
#[derive(Debug)]
pub struct Word<V>(PhantomData<V>);
impl<V: Vocabulary> Value for Word<V> {
    type Out = V::Meaning;
    const KIND: Kind = Kind::Word;
    fn of(raw: &Raw) -> Result<V::Meaning, String> {
        one_of(raw, &V::words())
    }
}

/// Element of a list of words of a vocabulary.
#[derive(Debug)]
pub struct WordItem<V>(PhantomData<V>);
impl<V: Vocabulary> Value for WordItem<V> {
    type Out = V::Meaning;
    const KIND: Kind = Kind::Texts;
    fn of(raw: &Raw) -> Result<V::Meaning, String> {
        one_of(raw, &V::words())
    }
}

/// Returns the meaning of a word.
pub(crate) fn one_of<T: Copy>(raw: &Raw, words: &[(&'static str, T)]) -> Result<T, String> {
    let typed = text_of(raw)?;
    let found = words.iter().find(|(word, _)| *word == typed).map(|(_, meaning)| *meaning);
    found.ok_or_else(|| format!("is none of {}", words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ")))
}

/// Word whose meaning depends on other keys.
#[derive(Debug)]
pub struct AnyWord;
impl Value for AnyWord {
    type Out = String;
    const KIND: Kind = Kind::Word;
    fn of(raw: &Raw) -> Result<String, String> {
        text_of(raw).map(String::from)
    }
}

/// Rule that numbers have to satisfy.
pub trait Rule {
    /// Description of the numbers that satisfy the rule.
    const EXPECTED: &'static str;
    /// Returns whether a number satisfies the rule.
    fn fits(x: f64) -> bool;
}

/// Number of at most [`LARGEST`](ferrite::operators::LARGEST) in size that satisfies a rule.
#[derive(Debug)]
pub struct Number<R>(PhantomData<R>);
impl<R: Rule> Value for Number<R> {
    type Out = f64;
    const KIND: Kind = Kind::Number;
    fn of(raw: &Raw) -> Result<f64, String> {
        numbers::one(raw, R::EXPECTED, &R::fits)
    }
}

/// One or several numbers that satisfy a rule; as a text joined with commas.
#[derive(Debug)]
pub struct Numbers<R>(PhantomData<R>);
impl<R: Rule> Value for Numbers<R> {
    type Out = Vec<f64>;
    const KIND: Kind = Kind::Numbers;
    fn of(raw: &Raw) -> Result<Vec<f64>, String> {
        numbers::several(raw, R::EXPECTED, &R::fits)
    }
}

/// Three numbers that satisfy a rule.
#[derive(Debug)]
pub struct Three<R>(PhantomData<R>);
impl<R: Rule> Value for Three<R> {
    type Out = [f64; 3];
    const KIND: Kind = Kind::Numbers;
    fn of(raw: &Raw) -> Result<[f64; 3], String> {
        let all = Numbers::<R>::of(raw)?;
        all.try_into().map_err(|_| "expected three numbers, for x, y and z, in units of 2π/L".into())
    }
}

/// Defines rules with descriptions of the numbers that satisfy them.
#[macro_export]
macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident: $expected:expr, $fits:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;
        impl $crate::values::Rule for $name {
            const EXPECTED: &'static str = $expected;
            fn fits(x: f64) -> bool {
                let fits: fn(f64) -> bool = $fits;
                fits(x)
            }
        }
    )*};
}

/// Defines vocabularies from their words.
#[macro_export]
macro_rules! vocabularies {
    ($($(#[$doc:meta])* $name:ident: $meaning:ty = $words:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;
        impl $crate::values::Vocabulary for $name {
            type Meaning = $meaning;
            fn words() -> Vec<(&'static str, $meaning)> {
                $words.into_iter().collect()
            }
        }
    )*};
}

rules! {
    /// All numbers.
    Any: "a number", |_| true;
    /// Numbers that can be divisors.
    Divisor: DIVISOR, is_divisor;
    /// Relative residuals.
    Residual: crate::RESIDUAL, crate::is_residual;
    /// Numbers above 0.
    Positive: "a number above 0", |x| x > 0.0;
    /// Numbers of at least 0.
    NonNegative: "a number of at least 0", |x| x >= 0.0;
}

/// Whole number from `FIRST` to `LAST`.
#[derive(Debug)]
pub struct Count<const FIRST: usize, const LAST: usize>;
impl<const FIRST: usize, const LAST: usize> Value for Count<FIRST, LAST> {
    type Out = usize;
    const KIND: Kind = Kind::Count;
    fn of(raw: &Raw) -> Result<usize, String> {
        numbers::count(raw, FIRST..=LAST)
    }
}

/// One or several whole numbers from `FIRST` to `LAST`; as a text joined with commas.
#[derive(Debug)]
pub struct CountList<const FIRST: usize, const LAST: usize>;
impl<const FIRST: usize, const LAST: usize> Value for CountList<FIRST, LAST> {
    type Out = Vec<usize>;
    const KIND: Kind = Kind::Numbers;
    fn of(raw: &Raw) -> Result<Vec<usize>, String> {
        let one = |raw: &Raw| {
            let found = match raw {
                Raw::Whole(n) => usize::try_from(*n).ok(),
                Raw::Text(text) => text.trim().replace('_', "").parse().ok(),
                _ => None,
            };
            let expected = || format!("is not a whole number from {FIRST} to {LAST}");
            found.filter(|n| (FIRST..=LAST).contains(n)).ok_or_else(expected)
        };
        numbers::each(raw, one)
    }
}

/// Four extents.
#[derive(Debug)]
pub struct Extents;
impl Value for Extents {
    type Out = [usize; 4];
    const KIND: Kind = Kind::Extents;
    fn of(raw: &Raw) -> Result<[usize; 4], String> {
        text::extents(&joined(raw))
    }
}

/// Extents of a lattice.
#[derive(Debug)]
pub struct LatticeExtents;
impl Value for LatticeExtents {
    type Out = Lattice;
    const KIND: Kind = Kind::Extents;
    fn of(raw: &Raw) -> Result<Lattice, String> {
        text::lattice(&joined(raw))
    }
}

/// Coordinates of a site.
#[derive(Debug)]
pub struct SiteCoordinates;
impl Value for SiteCoordinates {
    type Out = [usize; 4];
    const KIND: Kind = Kind::Extents;
    fn of(raw: &Raw) -> Result<[usize; 4], String> {
        let typed = joined(raw);
        let numbers: Option<Vec<usize>> = typed.split(',').map(|n| n.trim().parse().ok()).collect();
        let four = numbers.and_then(|numbers| <[usize; 4]>::try_from(numbers).ok());
        four.ok_or_else(|| format!("'{typed}': expected four whole numbers x,y,z,t"))
    }
}

/// Element of a list of sites.
#[derive(Debug)]
pub struct SiteItem;
impl Value for SiteItem {
    type Out = [usize; 4];
    const KIND: Kind = Kind::Sites;
    fn of(raw: &Raw) -> Result<[usize; 4], String> {
        SiteCoordinates::of(raw)
    }
}

/// One or several numbers, each of which may be a fraction, given as a text.
#[derive(Debug)]
pub struct Fractions;
impl Value for Fractions {
    type Out = Vec<String>;
    const KIND: Kind = Kind::Fractions;
    fn of(raw: &Raw) -> Result<Vec<String>, String> {
        Ok(joined(raw).split(',').map(|one| one.trim().to_string()).collect())
    }
}

/// Amount of memory, in bytes.
#[derive(Debug)]
pub struct Bytes;
impl Value for Bytes {
    type Out = usize;
    const KIND: Kind = Kind::Word;
    fn of(raw: &Raw) -> Result<usize, String> {
        text::parse_bytes(&joined(raw))
    }
}

/// Text that a function converts to a value.
pub trait Parsed {
    /// Type of the values.
    type Out;
    /// Kind of the values.
    const KIND: Kind = Kind::Text;
    /// Converts the text.
    ///
    /// # Errors
    /// Returns what is wrong, in the form of [`Value::of`].
    fn parse(text: &str) -> Result<Self::Out, String>;
}

/// Text with a meaning.
#[derive(Debug)]
pub struct Meaning<P>(PhantomData<P>);
impl<P: Parsed> Value for Meaning<P> {
    type Out = P::Out;
    const KIND: Kind = P::KIND;
    fn of(raw: &Raw) -> Result<P::Out, String> {
        P::parse(&joined(raw))
    }
}
