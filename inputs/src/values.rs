//! Kinds of values of keys, and their conversion from the typed form.
use crate::numbers;
pub use crate::raw::Raw;
use crate::raw::joined;
use crate::text;
use ferrite::lattice::Lattice;
pub use ferrite::operators::KeyKind as Kind;
use ferrite::operators::{DIVISOR, is_divisor};
use std::marker::PhantomData;

/// Type of the values of a key. Types with this trait are markers; the values themselves have the type [`Out`](Self::Out).
pub trait Value {
    /// Type of the values.
    type Out;
    /// Kind of the values, which determines how flags, files and advice treat them.
    const KIND: Kind;
    /// Converts a value as typed.
    ///
    /// # Errors
    /// Returns a message on what is wrong. If it begins with `is `, the value as typed precedes it; if it begins with `#3 is `, the fourth
    /// value of a list does.
    fn of(raw: &Raw) -> Result<Self::Out, String>;
}

/// Marker of keys whose value is any text.
#[derive(Debug)]
pub struct Text;
impl Value for Text {
    type Out = String;
    const KIND: Kind = Kind::Text;
    fn of(raw: &Raw) -> Result<String, String> {
        text_of(raw).map(String::from)
    }
}

/// Marker of lists whose elements are texts.
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

/// Marker of keys whose value is true or false.
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

/// Set of words that a key accepts, each with a meaning.
pub trait Vocabulary {
    /// Type of what the words stand for.
    type Meaning: Copy;
    /// Returns all words with their meanings.
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

/// Marker of keys whose value is a word, where the valid words depend on other keys.
#[derive(Debug)]
pub struct AnyWord;
impl Value for AnyWord {
    type Out = String;
    const KIND: Kind = Kind::Word;
    fn of(raw: &Raw) -> Result<String, String> {
        text_of(raw).map(String::from)
    }
}

/// Condition that the numbers of a key must satisfy.
pub trait Rule {
    /// Description of the numbers that satisfy the rule.
    const EXPECTED: &'static str;
    /// Returns whether a number satisfies the rule.
    fn fits(x: f64) -> bool;
}

/// Number that satisfies a rule and whose absolute value is at most [`LARGEST`](ferrite::operators::LARGEST).
#[derive(Debug)]
pub struct Number<R>(PhantomData<R>);
impl<R: Rule> Value for Number<R> {
    type Out = f64;
    const KIND: Kind = Kind::Number;
    fn of(raw: &Raw) -> Result<f64, String> {
        numbers::one(raw, R::EXPECTED, &R::fits)
    }
}

/// One or several numbers that satisfy a rule; in a text, they are separated by commas.
#[derive(Debug)]
pub struct Numbers<R>(PhantomData<R>);
impl<R: Rule> Value for Numbers<R> {
    type Out = Vec<f64>;
    const KIND: Kind = Kind::Numbers;
    fn of(raw: &Raw) -> Result<Vec<f64>, String> {
        numbers::several(raw, R::EXPECTED, &R::fits)
    }
}

/// Three numbers that satisfy a rule, such as the components of a momentum.
#[derive(Debug)]
pub struct Three<R>(PhantomData<R>);
impl<R: Rule> Value for Three<R> {
    type Out = [f64; 3];
    const KIND: Kind = Kind::Numbers;
    fn of(raw: &Raw) -> Result<[f64; 3], String> {
        let all = Numbers::<R>::of(raw)?;
        all.try_into().map_err(|_| {
            "is not a momentum with three components x, y and z, in units of 2π/L, such as [1, 0, 0]".into()
        })
    }
}

/// Defines rules for numbers, each with a description of the valid numbers.
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

/// Defines vocabularies from their words and meanings.
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
    /// Rule that all numbers satisfy.
    Any: "a number", |_| true;
    /// Rule for numbers that can be divisors.
    Divisor: DIVISOR, is_divisor;
    /// Rule for relative residuals that can be requested.
    Residual: crate::RESIDUAL, crate::is_residual;
    /// Rule for numbers above 0.
    Positive: "a number above 0", |x| x > 0.0;
    /// Rule for numbers of at least 0.
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

/// One or several whole numbers from `FIRST` to `LAST`; in a text, they are separated by commas.
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
            found.filter(|n| (FIRST..=LAST).contains(n)).ok_or_else(|| numbers::unfit_count(found, &(FIRST..=LAST)))
        };
        numbers::each(raw, one)
    }
}

/// Four extents, x, y, z and t.
#[derive(Debug)]
pub struct Extents;
impl Value for Extents {
    type Out = [usize; 4];
    const KIND: Kind = Kind::Extents;
    fn of(raw: &Raw) -> Result<[usize; 4], String> {
        text::extents(&joined(raw))
    }
}

/// Extents of a lattice, which must be even.
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
        four.ok_or_else(|| format!("'{typed}': expected four whole numbers x,y,z,t, each at least 0"))
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

/// One or several numbers. Each may be a fraction such as `1/2`, given as a text.
#[derive(Debug)]
pub struct Fractions;
impl Value for Fractions {
    type Out = Vec<String>;
    const KIND: Kind = Kind::Fractions;
    fn of(raw: &Raw) -> Result<Vec<String>, String> {
        Ok(joined(raw).split(',').map(|one| one.trim().to_string()).collect())
    }
}

/// Amount of memory in bytes, typed with or without a unit.
#[derive(Debug)]
pub struct Bytes;
impl Value for Bytes {
    type Out = usize;
    const KIND: Kind = Kind::Word;
    fn of(raw: &Raw) -> Result<usize, String> {
        text::parse_bytes(&joined(raw))
    }
}

/// Conversion of a text to a value.
pub trait Parsed {
    /// Type of the values.
    type Out;
    /// Kind of the values.
    const KIND: Kind = Kind::Text;
    /// Converts the text.
    ///
    /// # Errors
    /// Returns a message on what is wrong, in the form of [`Value::of`].
    fn parse(text: &str) -> Result<Self::Out, String>;
}

/// Text that `P` converts to a value of another type.
#[derive(Debug)]
pub struct Meaning<P>(PhantomData<P>);
impl<P: Parsed> Value for Meaning<P> {
    type Out = P::Out;
    const KIND: Kind = P::KIND;
    fn of(raw: &Raw) -> Result<P::Out, String> {
        P::parse(&joined(raw))
    }
}
