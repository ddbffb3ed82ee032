//! What people ask of a server's certificate: who issued it, and how long it holds.
//!
//! The certificate was verified by the TLS library before anybody reads it here; this reads a few of its fields (RFC 5280
//! §4.1) and believes nothing else about it.

use chrono::NaiveDateTime;
use plumbline_rules::session::Certificate;
use sha2::{Digest, Sha256};

/// Bytes of an issuer's name that are kept.
const MOST_NAME: usize = 300;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OID: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The explicit tag of the version, which is left out for the first.
const VERSION: u8 = 0xa0;

/// Reads a certificate in DER; `None` for what cannot be read.
pub(super) fn read(der: &[u8]) -> Option<Certificate> {
    let (certificate, _) = inside(der, SEQUENCE)?;
    let (mut fields, _) = inside(certificate, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        fields = element(fields)?.2;
    }
    // The serial number and the algorithm of the signature come before the issuer.
    let fields = element(element(fields)?.2)?.2;
    let (issuer, fields) = inside(fields, SEQUENCE)?;
    let (validity, _) = inside(fields, SEQUENCE)?;
    let (not_before_s, rest) = time(validity)?;
    let (not_after_s, _) = time(rest)?;
    let hash = Sha256::digest(der);
    let sha256 = plumbline_rules::canonical::hex(hash.as_ref());
    Some(Certificate { issuer: name(issuer), not_before_s, not_after_s, sha256 })
}

/// An element of DER: its tag, what is in it, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) =
            rest.split_at_checked(usize::from(first & 0x7f)).filter(|(digits, _)| digits.len() <= 4)?;
        (digits.iter().fold(0_usize, |length, digit| (length << 8) | usize::from(*digit)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// What is in an element of that tag, and what follows it.
fn inside(bytes: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    element(bytes).filter(|(tag, _, _)| *tag == wanted).map(|(_, content, rest)| (content, rest))
}

/// A moment as Unix seconds, and what follows it.
fn time(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (tag, content, rest) = element(bytes)?;
    let text = str::from_utf8(content).ok()?;
    let (text, form) = match tag {
        // Two digits of a year below 50 are of this century (RFC 5280 §4.1.2.5.1).
        UTC_TIME => {
            let century = if text.get(..2)?.parse::<u8>().ok()? < 50 { "20" } else { "19" };
            (format!("{century}{text}"), "%Y%m%d%H%M%SZ")
        }
        GENERALIZED_TIME => (text.to_owned(), "%Y%m%d%H%M%SZ"),
        _ => return None,
    };
    let moment = NaiveDateTime::parse_from_str(&text, form).ok()?;
    Some((moment.and_utc().timestamp(), rest))
}

/// A distinguished name, the most telling part first.
fn name(mut issuer: &[u8]) -> String {
    let mut parts = Vec::new();
    while let Some((set, rest)) = inside(issuer, SET) {
        issuer = rest;
        parts.extend(part(set));
    }
    parts.reverse();
    let mut name = parts.join(", ");
    name.truncate(name.floor_char_boundary(MOST_NAME));
    name
}

fn part(set: &[u8]) -> Option<String> {
    let (pair, _) = inside(set, SEQUENCE)?;
    let (kind, rest) = inside(pair, OID)?;
    let (_, value, _) = element(rest)?;
    let kind = match kind {
        [0x55, 0x04, 0x03] => "CN",
        [0x55, 0x04, 0x06] => "C",
        [0x55, 0x04, 0x0a] => "O",
        [0x55, 0x04, 0x0b] => "OU",
        _ => return None,
    };
    Some(format!("{kind}={}", String::from_utf8_lossy(value)))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    use super::*;

    fn made() -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["tides.example".to_owned()]).expect("a name");
        params.distinguished_name.push(DnType::CountryName, "NO");
        params.distinguished_name.push(DnType::OrganizationName, "Harbour Office");
        params.distinguished_name.push(DnType::CommonName, "Tides, Größe 1");
        params.not_before = date_time_ymd(1999, 12, 31);
        params.not_after = date_time_ymd(2051, 2, 1);
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").der().to_vec()
    }

    #[test]
    fn issuer_and_times_are_read() {
        let certificate = read(&made()).expect("it is a certificate");
        assert!(certificate.issuer.contains("CN=Tides, Größe 1") && certificate.issuer.contains("O=Harbour Office"));
        assert_eq!((certificate.not_before_s, certificate.not_after_s), (946_598_400, 2_558_822_400));
        assert_eq!(certificate.sha256.len(), 64);
    }

    #[test]
    fn what_is_cut_short_is_no_certificate_and_no_panic() {
        let whole = made();
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_none(), "{end} of {} bytes", whole.len());
        }
        assert!(read(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]).is_none());
    }
}
