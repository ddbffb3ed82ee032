//! A2A agents by domain: a line is a host, or the full address of a card that lives elsewhere.

use std::collections::HashSet;

use url::Url;

use crate::settings::Domains;

/// The list that comes with Plumbline.
const BUILTIN: &str = include_str!("../../../config/domains.txt");

/// Where a card is since A2A 0.3.
pub const CARD_PATH: &str = "/.well-known/agent-card.json";

/// Where a card was before.
pub const LEGACY_CARD_PATH: &str = "/.well-known/agent.json";

/// The longest line that is read as an address.
const MAX_LINE: usize = 2048;

/// Where an agent's card is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CardAddress {
    /// The key of the target: the host, with the card's path where it is not the well-known one.
    pub key: String,
    /// The card's address.
    pub url: String,
    /// Where the card would be before A2A 0.3; `None` for a card with an address of its own.
    pub legacy_url: Option<String>,
}

/// An agent to watch, and what its group says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// Where its card is.
    pub address: CardAddress,
    /// The group's place in the settings, for its tags, owner and headers.
    pub group: usize,
}

/// Every agent of every group, and the lines that were left out.
#[derive(Debug, Default)]
pub struct Reading {
    /// In the order named, each once.
    pub cards: Vec<Card>,
    /// A sentence for each line that is no address, or stands twice.
    pub problems: Vec<String>,
}

/// Reads the agents of all groups. A wrong line in a file is reported by its number and the rest is used.
///
/// # Errors
/// When a file cannot be read.
pub fn read_all(groups: &[Domains]) -> std::io::Result<Reading> {
    let mut reading = Reading::default();
    let mut seen = HashSet::new();
    for (group, domains) in groups.iter().enumerate() {
        if domains.builtin {
            read_lines(&mut reading, &mut seen, group, "built-in list", BUILTIN);
        }
        if let Some(path) = &domains.file {
            let text =
                std::fs::read(path).map_err(|error| std::io::Error::new(error.kind(), format!("{path}: {error}")))?;
            read_lines(&mut reading, &mut seen, group, path, &String::from_utf8_lossy(&text));
        }
        for (n, line) in domains.list.iter().enumerate() {
            read_line(&mut reading, &mut seen, group, &format!("domains.list, entry {}", n + 1), line);
        }
    }
    Ok(reading)
}

fn read_lines(reading: &mut Reading, seen: &mut HashSet<String>, group: usize, name: &str, text: &str) {
    for (n, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            read_line(reading, seen, group, &format!("{name}, line {}", n + 1), line);
        }
    }
}

fn read_line(reading: &mut Reading, seen: &mut HashSet<String>, group: usize, place: &str, line: &str) {
    match card_address(line) {
        Ok(address) if seen.insert(address.url.clone()) => reading.cards.push(Card { address, group }),
        Ok(address) => reading.problems.push(format!("{place}: `{}` stands twice", address.key)),
        Err(why) => reading.problems.push(format!("{place}: {why}")),
    }
}

/// Where the card of a host, or at an address, is asked for.
///
/// # Errors
/// A sentence when the text is neither.
pub fn card_address(text: &str) -> Result<CardAddress, String> {
    let text = text.trim();
    if text.len() > MAX_LINE {
        return Err(format!("an address of {} bytes is too long", text.len()));
    }
    let is_address = text.contains("://");
    let spelled = if is_address { text.to_owned() } else { format!("https://{text}") };
    let wrong = || format!("`{}` is neither a host nor an http or https address", text.escape_debug());
    let url = Url::parse(&spelled).map_err(|_| wrong())?;
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
    if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some() {
        return Err(wrong());
    }
    if !is_address && (url.path() != "/" || url.query().is_some() || url.fragment().is_some()) {
        return Err(format!(
            "`{}`: a card under a path is named by its full address, beginning with https://",
            text.escape_debug()
        ));
    }
    let place = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let origin = format!("{}://{place}", url.scheme());
    let path = if url.path() == "/" { CARD_PATH } else { url.path() };
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let well_known = path == CARD_PATH && query.is_empty();
    Ok(CardAddress {
        key: if well_known { place } else { format!("{place}{path}{query}") },
        url: format!("{origin}{path}{query}"),
        legacy_url: well_known.then(|| format!("{origin}{LEGACY_CARD_PATH}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_stands_for_its_well_known_card() {
        let rows = [
            ("agent.example", "agent.example", "https://agent.example/.well-known/agent-card.json", true),
            (
                "Agent.Example:8443",
                "agent.example:8443",
                "https://agent.example:8443/.well-known/agent-card.json",
                true,
            ),
            ("http://127.0.0.1:9/", "127.0.0.1:9", "http://127.0.0.1:9/.well-known/agent-card.json", true),
            ("https://x.example/a/card.json", "x.example/a/card.json", "https://x.example/a/card.json", false),
        ];
        for (text, key, url, legacy) in rows {
            let address = card_address(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!((address.key.as_str(), address.url.as_str(), address.legacy_url.is_some()), (key, url, legacy));
        }
    }

    #[test]
    fn what_is_no_address_is_named() {
        for text in
            ["a b", "ftp://x.example", "https://", "user:pw@x.example", "x.example/path", "https://u@x.example/", "[::"]
        {
            assert!(card_address(text).is_err(), "{text}");
        }
        assert!(card_address("x.example/card.json").unwrap_err().contains("full address"));
    }

    #[test]
    fn a_wrong_line_is_named_and_the_rest_is_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("domains.txt");
        std::fs::write(&path, "# ours\na.example\n\nnot a host\nb.example # second\na.example\n")
            .expect("it is written");
        let groups = [Domains { file: Some(path.display().to_string()), ..Domains::default() }];
        let reading = read_all(&groups).expect("it reads");
        assert_eq!(
            reading.cards.iter().map(|c| c.address.key.as_str()).collect::<Vec<_>>(),
            ["a.example", "b.example"]
        );
        assert!(
            reading.problems[0].contains("line 4") && reading.problems[1].contains("line 6"),
            "{:?}",
            reading.problems
        );
    }

    #[test]
    fn the_builtin_list_has_no_wrong_line() {
        let reading = read_all(&[Domains { builtin: true, ..Domains::default() }]).expect("it reads");
        assert!(reading.problems.is_empty(), "{:?}", reading.problems);
        assert!(reading.cards.len() > 50);
    }
}
