//! Where a name ends and its owner begins, by the [public suffix list](https://publicsuffix.org/list/).

use std::sync::LazyLock;

use publicsuffix::{List, Psl, Type};

/// Read when the first name is asked for; `rules/data/suffixes.py` brings a newer list.
static LIST: LazyLock<List> = LazyLock::new(|| {
    include_str!("../../data/public_suffixes.txt").parse().expect("the list is kept in its own form, a test reads it")
});

/// The domain that somebody registered: one label more than the public suffix, where users of a hosting platform count as
/// owners of their own. `name` is in lower case and ASCII; `None` for a public suffix itself.
#[must_use]
pub fn registered(name: &str) -> Option<&str> {
    std::str::from_utf8(LIST.domain(name.as_bytes())?.as_bytes()).ok()
}

/// Whether a name ends in the domain of a hosting platform, which gives names away.
#[must_use]
pub fn is_of_platform(name: &str) -> bool {
    LIST.suffix(name.as_bytes()).is_some_and(|suffix| suffix.typ() == Some(Type::Private))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_where_the_list_says() {
        for (name, owner) in [
            ("www.example.com", Some("example.com")),
            ("a.b.example.co.uk", Some("example.co.uk")),
            ("co.uk", None),
            ("tides.github.io", Some("tides.github.io")),
            ("agent.unknown-ending", Some("agent.unknown-ending")),
            ("a.b.ck", Some("a.b.ck")),
            ("www.ck", Some("www.ck")),
            ("www.xn--55qx5d.xn--j6w193g", Some("www.xn--55qx5d.xn--j6w193g")),
            ("a.xn--p1ai", Some("a.xn--p1ai")),
        ] {
            assert_eq!(registered(name), owner, "{name}");
        }
        assert!(is_of_platform("tides.github.io") && is_of_platform("tides.vercel.app"));
        assert!(!is_of_platform("www.example.com") && !is_of_platform("agent.unknown-ending"));
    }
}
