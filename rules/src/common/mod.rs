//! Every kind of document: its bytes, its URLs, secrets and hostile text in it.

/// A base document's extension parameters, where a specification leaves everything open: examples about values of any
/// kind stand there.
macro_rules! in_params {
    ($params:literal) => {
        concat!(r#"{"capabilities": {"extensions": [{"uri": "https://ext.example.com/v1", "params": "#, $params, "}]}}")
    };
}

mod body;
mod credentials;
pub(crate) mod drift;
mod hostile;
mod people;
mod secrets;
mod strings;

mod urls;
mod wire;

use crate::rule::Rule;

/// The topics in the order their rules run.
pub(crate) const TOPICS: &[&[&Rule]] =
    &[wire::RULES, body::RULES, secrets::RULES, urls::RULES, hostile::RULES, people::RULES, drift::RULES];
