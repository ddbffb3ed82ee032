//! Which addresses may be called: the public internet, and whatever the operator opens on purpose.
//!
//! Everything here is a pure function of text and addresses. It is asked twice for every hop: about the URL, because a
//! literal address never reaches a resolver, and about every address that a name resolves to, right before connecting.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use url::{Host, Url};

/// The policy: public addresses, plus the networks that the operator opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guard {
    /// Networks that may be called although they are not public.
    pub allow_networks: Vec<IpNet>,
    /// What is more open to receivers of webhooks; `None`: https at 443 and 8443 only.
    pub receivers: Option<Receivers>,
}

/// What the operator opens to receivers of webhooks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receivers {
    /// Ports at which they listen.
    pub ports: Vec<u16>,
}

/// Why something is not called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The scheme is neither http nor https.
    #[error("the scheme `{0}` is not called")]
    Scheme(String),
    /// The URL carries a user name or password.
    #[error("the address carries a user name or password")]
    UserInfo,
    /// The URL names no host.
    #[error("the address has no host")]
    NoHost,
    /// The host has characters that no name has, such as the braces of a template.
    #[error("`{0}` is no host name")]
    HostName(String),
    /// Only these ports are open to webhooks.
    #[error("port {0} is not called")]
    Port(u16),
    /// The host is an address, or resolves to one, that is not public.
    #[error("{0} is not a public address")]
    Address(IpAddr),
    /// The host's name is by its text not public.
    #[error("`{0}` is not a public name")]
    Name(String),
}

impl Refusal {
    /// The address is well formed but may not be called; otherwise it cannot be called by anybody.
    #[must_use]
    pub fn is_about_place(&self) -> bool {
        match self {
            Refusal::Address(_) | Refusal::Name(_) | Refusal::Port(_) => true,
            Refusal::Scheme(_) | Refusal::UserInfo | Refusal::NoHost | Refusal::HostName(_) => false,
        }
    }
}

impl Guard {
    /// Whether the crawler may call this URL, as far as its text tells. Names are judged again when they are resolved.
    ///
    /// # Errors
    /// The reason not to call it.
    pub fn check_url(&self, url: &Url) -> Result<(), Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::UserInfo);
        }
        match url.host() {
            None => Err(Refusal::NoHost),
            Some(Host::Domain(name)) => self.check_name(name),
            Some(Host::Ipv4(ip)) => self.check_address(ip.into()),
            Some(Host::Ipv6(ip)) => self.check_address(ip.into()),
        }
    }

    /// Whether a webhook may be sent there: https, and only to the ports that receivers use. With [`Guard::receivers`] an
    /// address in an opened network, written as such, may be called by plain http and at any port: it is the operator's own.
    ///
    /// # Errors
    /// The reason not to call it.
    pub fn check_webhook_url(&self, url: &Url) -> Result<(), Refusal> {
        self.check_url(url)?;
        if self.receivers.is_some() && self.is_opened_by_text(url) {
            return Ok(());
        }
        if url.scheme() != "https" {
            return Err(Refusal::Scheme(url.scheme().to_owned()));
        }
        let port = url.port_or_known_default().unwrap_or_default();
        let is_open = self.receivers.as_ref().map_or([443, 8443].contains(&port), |open| open.ports.contains(&port));
        if is_open { Ok(()) } else { Err(Refusal::Port(port)) }
    }

    /// The host is an address of an opened network, or this machine by its name where that is opened.
    fn is_opened_by_text(&self, url: &Url) -> bool {
        match url.host() {
            None => false,
            Some(Host::Domain(name)) => is_localhost(name) && self.is_opened(Ipv4Addr::LOCALHOST.into()),
            Some(Host::Ipv4(ip)) => self.is_opened(ip.into()),
            Some(Host::Ipv6(ip)) => self.is_opened(IpAddr::from(ip).to_canonical()),
        }
    }

    /// Whether a name is worth resolving: one that can be a name, and an internal one only when some network is open.
    fn check_name(&self, name: &str) -> Result<(), Refusal> {
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
        if !name.bytes().all(is_name) {
            return Err(Refusal::HostName(name.to_owned()));
        }
        if is_internal_name(name) && self.allow_networks.is_empty() {
            return Err(Refusal::Name(name.to_owned()));
        }
        Ok(())
    }

    /// Whether this address may be connected to.
    ///
    /// # Errors
    /// [`Refusal::Address`].
    pub fn check_address(&self, ip: IpAddr) -> Result<(), Refusal> {
        let ip = ip.to_canonical();
        let stands_for = inner_v4(ip).map(IpAddr::V4);
        let whole = is_public(ip) || self.is_opened(ip);
        let inner = stands_for.is_none_or(|v4| is_public(v4) || self.is_opened(v4));
        if whole && inner { Ok(()) } else { Err(Refusal::Address(ip)) }
    }

    /// Whether a name with these addresses may be connected to: every one of them must be fine, or an attacker would
    /// choose by the order of the answer. A name that is internal by its text must lead into opened networks.
    ///
    /// # Errors
    /// The first address that is not fine, or the name.
    pub fn check_answer(&self, name: &str, addresses: &[IpAddr]) -> Result<(), Refusal> {
        addresses.iter().try_for_each(|ip| self.check_address(*ip))?;
        let internal = is_internal_name(name);
        if internal && !addresses.iter().all(|ip| self.is_opened(ip.to_canonical())) {
            return Err(Refusal::Name(name.to_owned()));
        }
        Ok(())
    }

    /// The operator opened a network that holds this address.
    fn is_opened(&self, ip: IpAddr) -> bool {
        self.allow_networks.iter().any(|network| network.contains(&ip))
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let networks: Vec<String> = self.allow_networks.iter().map(ToString::to_string).collect();
        if networks.is_empty() {
            return f.write_str("public addresses only");
        }
        write!(f, "public addresses and {}", networks.join(", "))
    }
}

/// Whether the address can be reached over the public internet and is meant to be.
#[must_use]
pub fn is_public(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    match ip {
        IpAddr::V4(_) => !V4_NOT_PUBLIC.iter().any(|network| network.contains(&ip)),
        IpAddr::V6(_) => V6_PUBLIC.contains(&ip) && !V6_NOT_PUBLIC.iter().any(|network| network.contains(&ip)),
    }
}

/// Whether a name says by its text that it is not public: `localhost`, a name without a dot, or one under a suffix that
/// is used inside of networks only.
#[must_use]
pub fn is_internal_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    !name.contains('.') || INTERNAL_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Whether the host of an address is public as far as its text tells; text that is no address is not.
#[must_use]
pub fn is_public_by_text(url: &str) -> bool {
    match Url::parse(url).ok().as_ref().and_then(Url::host) {
        None => false,
        Some(Host::Domain(name)) => !is_internal_name(name),
        Some(Host::Ipv4(ip)) => is_public(ip.into()),
        Some(Host::Ipv6(ip)) => is_public(ip.into()),
    }
}

/// `localhost` or a name below it: always this machine, whatever a name server says (RFC 6761).
#[must_use]
pub fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

const INTERNAL_SUFFIXES: [&str; 6] = [".localhost", ".local", ".internal", ".lan", ".home.arpa", ".corp"];

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> IpNet {
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix)
}

const fn v6(a: u16, b: u16, prefix: u8) -> IpNet {
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0)), prefix)
}

/// IPv4 networks that are not called: the special-purpose registry of IANA, and one address of a cloud.
const V4_NOT_PUBLIC: [IpNet; 17] = [
    v4(0, 0, 0, 0, 8),          // this network
    v4(10, 0, 0, 0, 8),         // private
    v4(100, 64, 0, 0, 10),      // shared by carriers
    v4(127, 0, 0, 0, 8),        // loopback
    v4(168, 63, 129, 16, 32),   // the host below every machine of one cloud
    v4(169, 254, 0, 0, 16),     // link-local and cloud metadata
    v4(172, 16, 0, 0, 12),      // private
    v4(192, 0, 0, 0, 24),       // protocol assignments
    v4(192, 0, 2, 0, 24),       // documentation
    v4(192, 88, 99, 0, 24),     // 6to4 relays
    v4(192, 168, 0, 0, 16),     // private
    v4(198, 18, 0, 0, 15),      // benchmarks
    v4(198, 51, 100, 0, 24),    // documentation
    v4(203, 0, 113, 0, 24),     // documentation
    v4(224, 0, 0, 0, 4),        // multicast
    v4(240, 0, 0, 0, 4),        // reserved
    v4(255, 255, 255, 255, 32), // broadcast
];

/// The only part of IPv6 from which public addresses are given out. Outside of it lie `::`, `::1`, discard, NAT64,
/// IPv4-compatible, unique-local, link-local, site-local and multicast addresses.
const V6_PUBLIC: IpNet = v6(0x2000, 0, 3);

/// What is not public inside of [`V6_PUBLIC`].
const V6_NOT_PUBLIC: [IpNet; 4] = [
    v6(0x2001, 0, 23),      // protocol assignments, Teredo and ORCHID among them
    v6(0x2001, 0x0db8, 32), // documentation
    v6(0x2002, 0, 16),      // 6to4
    v6(0x3fff, 0, 20),      // documentation
];

/// The IPv4 address that a translated or tunnelled IPv6 address stands for. IPv4-mapped ones are judged as IPv4 before.
fn inner_v4(ip: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(ip) = ip else { return None };
    match ip.segments() {
        // 64:ff9b::/96 and 64:ff9b:1::/48, NAT64
        [0x64, 0xff9b, 0 | 1, _, _, _, high, low] => Some(joined(high, low)),
        // 2002::/16, 6to4
        [0x2002, high, low, ..] => Some(joined(high, low)),
        // 2001::/32, Teredo: the client's address with every bit turned
        [0x2001, 0, .., high, low] => Some(joined(!high, !low)),
        // ::/96, IPv4-compatible; `::` and `::1` are addresses of their own
        [0, 0, 0, 0, 0, 0, high, low] if (high, low) > (0, 1) => Some(joined(high, low)),
        _ => None,
    }
}

fn joined(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn guard(networks: &[&str]) -> Guard {
        Guard { allow_networks: networks.iter().map(|n| n.parse().unwrap()).collect(), receivers: None }
    }

    fn verdict(guard: &Guard, url: &str) -> Result<(), Refusal> {
        guard.check_url(&Url::parse(url).unwrap())
    }

    #[test]
    fn addresses_that_are_not_public_are_refused() {
        let refused = [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.0",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.192",
            "192.0.2.7",
            "192.88.99.1",
            "192.168.0.1",
            "192.168.255.255",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.255",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::2",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::8.8.8.8",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:10::1",
            "2001:20::1",
            "2001:1ff:ffff::1",
            "2001:db8::1",
            "2002:a00:1::1",
            "2002:808:808::1",
            "3fff::1",
            "3fff:fff:ffff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fdff::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
            "4000::1",
            "1fff::1",
        ];
        for text in refused {
            let ip: IpAddr = text.parse().unwrap();
            assert!(!is_public(ip), "{ip} is public");
            assert!(guard(&[]).check_address(ip).is_err(), "{ip} is called");
        }
    }

    #[test]
    fn public_addresses_are_called() {
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "126.255.255.255",
            "128.0.0.1",
            "168.63.129.17",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.1",
            "192.0.1.1",
            "192.0.3.1",
            "192.167.255.255",
            "192.169.0.1",
            "198.17.255.255",
            "198.20.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2001:db7::1",
            "2001:db9::1",
            "2003::1",
            "2606:4700::1111",
            "2a00::1",
            "3ffe::1",
            "3fff:1000::1",
        ];
        for text in public {
            let ip: IpAddr = text.parse().unwrap();
            assert!(is_public(ip), "{ip} is not public");
            assert_eq!(guard(&[]).check_address(ip), Ok(()), "{ip}");
        }
    }

    #[test]
    fn a_literal_address_is_refused_in_every_notation() {
        let loopback = [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.0.0.1/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://127.0.0.1./",
            "http://%31%32%37.0.0.1/",
            "http://①②⑦.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://0/",
            "http://[::ffff:a9fe:a9fe]/",
        ];
        for url in loopback {
            assert!(matches!(verdict(&guard(&[]), url), Err(Refusal::Address(_))), "{url}");
        }
    }

    #[test]
    fn only_http_without_credentials_is_called() {
        let guard = guard(&["0.0.0.0/0"]);
        assert_eq!(verdict(&guard, "ftp://example.com/"), Err(Refusal::Scheme("ftp".into())));
        assert_eq!(verdict(&guard, "file:///etc/passwd"), Err(Refusal::Scheme("file".into())));
        assert_eq!(verdict(&guard, "data:text/plain,x"), Err(Refusal::Scheme("data".into())));
        assert_eq!(verdict(&guard, "https://user@example.com/"), Err(Refusal::UserInfo));
        assert_eq!(verdict(&guard, "https://:secret@example.com/"), Err(Refusal::UserInfo));
        assert_eq!(verdict(&guard, "http://{a}.example.com/"), Err(Refusal::HostName("{a}.example.com".into())));
        assert_eq!(verdict(&guard, "http://bücher.example/"), Ok(()));
        assert_eq!(verdict(&guard, "http://_a.example.com:8080/card"), Ok(()));
    }

    #[test]
    fn a_receiver_is_called_by_https_at_its_ports_and_by_http_only_in_an_opened_network() {
        let open =
            Guard { receivers: Some(Receivers { ports: vec![443, 9443] }), ..guard(&["10.1.0.0/16", "127.0.0.1/32"]) };
        let says = |guard: &Guard, url: &str| guard.check_webhook_url(&Url::parse(url).unwrap());
        for (url, refusal) in [
            ("https://hooks.example.com/x", None),
            ("https://hooks.example.com:9443/x", None),
            ("https://hooks.example.com:8443/x", Some(Refusal::Port(8443))),
            ("http://hooks.example.com/x", Some(Refusal::Scheme("http".into()))),
            ("http://10.1.2.3:9000/x", None),
            ("http://10.2.2.3:9000/x", Some(Refusal::Address("10.2.2.3".parse().unwrap()))),
            ("http://localhost:9000/x", None),
            ("https://u:p@hooks.example.com/x", Some(Refusal::UserInfo)),
        ] {
            assert_eq!(says(&open, url).err(), refusal, "{url}");
        }
        let strict = guard(&["10.1.0.0/16"]);
        assert_eq!(says(&strict, "http://10.1.2.3/x"), Err(Refusal::Scheme("http".into())));
        assert_eq!(says(&strict, "https://hooks.example.com:8443/x"), Ok(()));
    }

    #[test]
    fn internal_names_need_an_opened_network() {
        let names = [
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "agent",
            "printer.local",
            "x.corp.internal",
            "nas.lan",
            "box.home.arpa",
            "wiki.corp",
        ];
        for name in names {
            let url = format!("http://{name}/");
            assert!(matches!(verdict(&guard(&[]), &url), Err(Refusal::Name(_))), "{name}");
            assert_eq!(verdict(&guard(&["10.0.0.0/8"]), &url), Ok(()), "{name}");
        }
        for name in ["localhost.example.com", "internal.example", "corp.example.org", "notlocal.dev"] {
            assert!(!is_internal_name(name), "{name}");
        }
    }

    #[test]
    fn an_internal_name_must_lead_into_an_opened_network() {
        let guard = guard(&["10.0.0.0/8"]);
        let public: IpAddr = "8.8.8.8".parse().unwrap();
        let opened: IpAddr = "10.1.2.3".parse().unwrap();
        assert_eq!(guard.check_answer("agent", &[opened]), Ok(()));
        assert_eq!(guard.check_answer("agent", &[public]), Err(Refusal::Name("agent".into())));
        assert_eq!(guard.check_answer("agent.example.com", &[public, opened]), Ok(()));
    }

    #[test]
    fn one_bad_address_refuses_the_whole_answer() {
        let good: IpAddr = "8.8.8.8".parse().unwrap();
        let bad: IpAddr = "169.254.169.254".parse().unwrap();
        for answer in [[good, bad], [bad, good]] {
            assert_eq!(guard(&[]).check_answer("example.com", &answer), Err(Refusal::Address(bad)));
        }
    }

    #[test]
    fn an_opened_network_opens_itself_and_nothing_else() {
        let guard = guard(&["127.0.0.0/8", "fd00::/16"]);
        for open in ["127.0.0.1", "::ffff:127.0.0.1", "fd00::7", "8.8.8.8"] {
            assert_eq!(guard.check_address(open.parse().unwrap()), Ok(()), "{open}");
        }
        for shut in ["10.0.0.1", "::1", "fd01::1", "169.254.169.254", "::ffff:10.0.0.1"] {
            assert!(guard.check_address(shut.parse().unwrap()).is_err(), "{shut}");
        }
    }

    #[test]
    fn opening_a_translating_network_does_not_open_what_hides_in_it() {
        let guard = guard(&["64:ff9b::/96", "2002::/16", "2001::/32"]);
        assert_eq!(guard.check_address("64:ff9b::8.8.8.8".parse().unwrap()), Ok(()));
        assert_eq!(guard.check_address("2002:808:808::1".parse().unwrap()), Ok(()));
        for hidden in ["64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "2002:a00:1::1", "2001:0:1:1:0:0:80ff:fffe"] {
            assert!(guard.check_address(hidden.parse().unwrap()).is_err(), "{hidden}");
        }
    }

    #[test]
    fn webhooks_go_to_https_on_the_usual_ports() {
        let check = |url: &str| guard(&[]).check_webhook_url(&Url::parse(url).unwrap());
        assert_eq!(check("https://hooks.example.com/x"), Ok(()));
        assert_eq!(check("https://hooks.example.com:8443/x"), Ok(()));
        assert_eq!(check("http://hooks.example.com/x"), Err(Refusal::Scheme("http".into())));
        assert_eq!(check("https://hooks.example.com:22/x"), Err(Refusal::Port(22)));
        assert!(check("https://10.0.0.1/x").is_err());
    }

    proptest! {
        #[test]
        fn a_literal_in_a_url_is_judged_as_the_address_it_is(bits: u128, is_v4: bool) {
            let ip = if is_v4 { IpAddr::V4((bits as u32).into()) } else { IpAddr::V6(bits.into()) };
            let host = if is_v4 { ip.to_string() } else { format!("[{ip}]") };
            prop_assert_eq!(verdict(&guard(&[]), &format!("http://{host}/")), guard(&[]).check_address(ip));
        }

        #[test]
        fn no_way_of_writing_an_ipv4_address_into_ipv6_makes_it_public(bits: u32) {
            let v4 = Ipv4Addr::from(bits);
            let [high, low] = [(bits >> 16) as u16, bits as u16];
            let opened = guard(&["::/0"]);
            let forms = [
                v4.to_ipv6_mapped(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
                Ipv6Addr::new(0x2001, 0, 1, 1, 0, 0, !high, !low),
            ];
            for form in forms {
                prop_assert_eq!(opened.check_address(form.into()).is_ok(), is_public(v4.into()), "{}", form);
            }
        }

        #[test]
        fn no_url_is_a_panic(text in "\\PC{0,60}") {
            if let Ok(url) = Url::parse(&text) {
                let _ = guard(&[]).check_url(&url);
                let _ = guard(&[]).check_webhook_url(&url);
            }
            let _ = is_public_by_text(&text);
        }
    }
}
