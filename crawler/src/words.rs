//! What went wrong on the wire, in words for people.

use plumbline_rules::session::WireError;

/// Why there was no answer.
pub fn wire_error(error: WireError) -> &'static str {
    match error {
        WireError::Dns => "the name could not be resolved",
        WireError::DnsNxdomain => "the name does not exist",
        WireError::DnsTimeout => "the name servers did not answer in time",
        WireError::DnsUnavailable => "our resolver cannot be reached",
        WireError::NoRoute => "there is no way into the network from here",
        WireError::Refused => "nobody listens there",
        WireError::ConnectTimeout => "no connection in time",
        WireError::Timeout => "no answer in time",
        WireError::Reset => "the connection broke",
        WireError::Tls => "TLS could not be agreed",
        WireError::TlsCertificateExpired => "its certificate has ended",
        WireError::TlsCertificateName => "its certificate is for another name",
        WireError::TlsCertificateUnknownIssuer => "its certificate leads to no known authority",
        WireError::AddressGuard => "its address is not one we may call (net.allow_networks)",
        WireError::BadUrl => "the address cannot be called",
        WireError::OptOut => "whoever stands behind it asked to be left alone (crawl.opt_out)",
        WireError::Robots => "its robots.txt asks us not to",
        WireError::RedirectLimit => "too many redirects",
        WireError::Protocol => "what answers does not speak HTTP",
    }
}
