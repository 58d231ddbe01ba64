//! Tadpole factors, and the smearing of the links of improved staggered operators.
use super::keys::{Key, KeyKind, LARGEST};
use serde_json::{Map, Value};

/// Key of the tadpole factor.
pub(super) static U0: Key = Key::new(
    "u0",
    "U",
    KeyKind::Word,
    "Tadpole factor: clover coefficients are csw / u0^3, and asqtad's paths of n links are divided by u0^(n-1); asqtad \
     also takes 'plaquette', the fourth root of the mean plaquette [default: 1]",
    "1.0",
);
/// Choice of asqtad's tadpole factor u_0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tadpole {
    /// A given u_0.
    Given(f64),
    /// Fourth root of the mean plaquette.
    Plaquette,
}

impl Tadpole {
    /// Parses a tadpole factor: a number from 1e-3 to [`LARGEST`], or `plaquette`.
    ///
    /// # Errors
    /// A sentence that describes the fault of the text.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        match text.parse::<f64>() {
            _ if text == "plaquette" => Ok(Tadpole::Plaquette),
            // u_0 must not be too small, because paths of n links are divided by u_0 to the power n − 1.
            Ok(u0) if (1e-3..=LARGEST).contains(&u0) => Ok(Tadpole::Given(u0)),
            _ => Err(format!("'{text}' is neither a number from 1e-3 to {LARGEST:e}, nor 'plaquette'")),
        }
    }
}

/// Smearing of the links of a staggered operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Smearing {
    /// Links of the configuration without smearing.
    None,
    /// Asqtad (Orginos, Toussaint and Sugar 1999).
    Asqtad(Tadpole),
    /// HISQ (Follana et al. 2007), with the correction ε of the Naik term.
    Hisq(f64),
}

impl Smearing {
    /// Returns the JSON keys that describe the smearing in answers.
    pub(super) fn describe(self) -> Map<String, Value> {
        let (u0, epsilon) = match self {
            Smearing::Asqtad(Tadpole::Given(u0)) => (Some(u0), None),
            Smearing::Hisq(epsilon) => (None, Some(epsilon)),
            Smearing::None | Smearing::Asqtad(Tadpole::Plaquette) => (None, None),
        };
        [("u0".to_string(), u0.into()), ("naik_epsilon".to_string(), epsilon.into())].into_iter().collect()
    }
}
