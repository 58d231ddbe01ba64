//! Keys of a table `[[fermion]]` in an input.
use crate::failure::ReadBy;
use crate::{multigrid, stout};
use ferrite::hmc::quarks::QuarkKeys;
use ferrite::hmc::stout::StoutSmearing;
use ferrite::multigrid::MultigridParams;
use ferrite::operators::Keys;
use ferrite_inputs::values::{Switch, Value as _};
use ferrite_inputs::{Input, RESIDUAL, is_residual};
use std::ops::RangeInclusive;

/// Table `[[fermion]]` of an input, from which quarks and their operator read their keys.
pub struct InTable<'a> {
    input: &'a mut Input,
    number: usize,
}

impl<'a> InTable<'a> {
    /// Returns the table `[[fermion]]` with the index `number`, counted from 0.
    pub fn new(input: &'a mut Input, number: usize) -> Self {
        InTable { input, number }
    }
    fn key(&self, key: &str) -> String {
        format!("fermion.{}.{key}", self.number)
    }
}

impl Keys for InTable<'_> {
    fn is_given(&self, key: &str) -> bool {
        self.input.get(&self.key(key)).is_some()
    }
    fn number(&mut self, key: &'static str, expected: &str, fits: &dyn Fn(f64) -> bool) -> Option<f64> {
        let key = self.key(key);
        self.input.number(&key, expected, fits)
    }
    fn word(&mut self, key: &'static str, words: &[&'static str]) -> Option<usize> {
        let (key, choices) = (self.key(key), words.iter().enumerate().map(|(place, word)| (*word, place)));
        let choices: Vec<_> = choices.collect();
        self.input.choice(&key, &choices)
    }
    fn parse(&mut self, key: &'static str, parse: &mut dyn FnMut(&str) -> Result<(), String>) {
        let key = self.key(key);
        self.input.parse(&key, parse);
    }
    fn is_on(&mut self, key: &'static str) -> bool {
        let key = self.key(key);
        self.input.parsed(&key, Switch::of) == Some(true)
    }
    fn refuse(&mut self, key: &str, why: &str) {
        if let Some(setting) = self.input.get(&self.key(key)) {
            self.input.wrong(&setting, why);
        }
    }
    fn conflict(&mut self, key: &str, other: &str, why: &str) {
        let (key, other) = (self.key(key), self.key(other));
        self.input.conflict(&key, &other, why);
    }
    fn missing(&mut self, why: &str) {
        self.input.missing(format!("fermion.{}: {why}", self.number));
    }
    /// Returns the key with its value as in an input file.
    fn spelled(&self, key: &str, value: &str) -> String {
        ReadBy::Keys.spelled(key, value)
    }
}

impl QuarkKeys for InTable<'_> {
    fn text(&self, key: &str) -> Option<String> {
        self.input.get(&self.key(key)).map(|setting| setting.text().into())
    }
    fn count(&mut self, key: &'static str, range: RangeInclusive<usize>) -> Option<usize> {
        let key = self.key(key);
        self.input.count(&key, range)
    }
    fn numbers(&mut self, key: &'static str, expected: &str, fits: &dyn Fn(f64) -> bool) -> Option<Vec<f64>> {
        let key = self.key(key);
        self.input.numbers(&key, expected, fits)
    }
    fn residuals(&mut self, key: &'static str) -> Option<Vec<f64>> {
        self.numbers(key, RESIDUAL, &is_residual)
    }
    fn needed(&mut self, understood: bool, key: &str, example: &str) {
        if !understood {
            self.input.needed(&self.key(key), example);
        }
    }
    fn stout(&mut self) -> Option<StoutSmearing> {
        stout::of_operator(self.input, &format!("fermion.{}", self.number))
    }
    fn multigrid(&mut self) -> MultigridParams {
        multigrid::of_keys(self.input, &format!("fermion.{}", self.number))
    }
}
