//! Networks in settings: a list of texts, each a network or a single address.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Networks as an operator writes them down.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Networks(pub Vec<IpNet>);

/// A text that names neither a network nor an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no network, such as 10.0.0.0/8, and no address")]
pub struct NoNetwork(String);

impl TryFrom<Vec<String>> for Networks {
    type Error = NoNetwork;

    fn try_from(texts: Vec<String>) -> Result<Self, NoNetwork> {
        let read = |text: String| network(&text).ok_or(NoNetwork(text));
        texts.into_iter().map(read).collect::<Result<_, _>>().map(Networks)
    }
}

impl From<Networks> for Vec<String> {
    fn from(networks: Networks) -> Self {
        networks.0.iter().map(ToString::to_string).collect()
    }
}

fn network(text: &str) -> Option<IpNet> {
    let text = text.trim();
    text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_single_addresses_are_read() {
        for (text, expected) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("127.0.0.1", "127.0.0.1/32"),
            ("::1", "::1/128"),
            (" fd00::/8 ", "fd00::/8"),
        ] {
            assert_eq!(network(text).map(|network| network.to_string()).as_deref(), Some(expected));
        }
    }

    #[test]
    fn other_texts_are_named() {
        for text in ["", "10.0.0.0/33", "localhost", "10.0.0"] {
            let list = serde_json::json!(["10.0.0.0/8", text]);
            let error = serde_json::from_value::<Networks>(list).unwrap_err();
            assert_eq!(error.to_string(), NoNetwork(text.to_owned()).to_string());
        }
    }
}
