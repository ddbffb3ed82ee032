//! Signing as Standard Webhooks 1.0.0 has it: over `<id>.<timestamp>.<body>`, by HMAC-SHA256 (`v1`) and Ed25519 (`v1a`).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use ring::{hmac, rand};

/// Bytes of a secret that we make.
const SECRET_BYTES: usize = 32;

/// Bytes of a secret that a person brings.
const SECRET_RANGE: std::ops::RangeInclusive<usize> = 24..=64;

/// How far the time of a message may be from ours before a receiver drops it, in seconds (Standard Webhooks §"verifying").
pub const TOLERANCE_S: i64 = 300;

/// A key that signs; it prints as `***`.
#[derive(Clone, PartialEq, Eq)]
pub enum Key {
    /// `whsec_…`, shared with the receiver.
    Shared(Vec<u8>),
    /// `whsk_…`, which stays here, as PKCS #8; the receiver has `whpk_…`.
    Own(Vec<u8>),
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Why a text is no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSecret {
    /// It does not begin with `whsec_`.
    #[error("a secret begins with whsec_")]
    Prefix,
    /// The rest is no base64.
    #[error("what follows whsec_ is no base64")]
    Base64,
    /// It is too short or too long.
    #[error("a secret holds 24 to 64 bytes, this one {0}")]
    Length(usize),
    /// The random numbers of this machine failed.
    #[error("this machine gives no random numbers")]
    Random,
    /// The key pair is none.
    #[error("this is no Ed25519 key")]
    Pair,
}

impl Key {
    /// A new shared secret.
    ///
    /// # Errors
    /// [`BadSecret::Random`].
    pub fn new_shared() -> Result<Key, BadSecret> {
        let mut bytes = vec![0; SECRET_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| BadSecret::Random)?;
        Ok(Key::Shared(bytes))
    }

    /// A new key pair.
    ///
    /// # Errors
    /// [`BadSecret::Random`].
    pub fn new_own() -> Result<Key, BadSecret> {
        let pair = Ed25519KeyPair::generate_pkcs8(&rand::SystemRandom::new()).map_err(|_| BadSecret::Random)?;
        Ok(Key::Own(pair.as_ref().to_vec()))
    }

    /// A shared secret as a person has it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Key, BadSecret> {
        let encoded = text.trim().strip_prefix("whsec_").ok_or(BadSecret::Prefix)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| BadSecret::Base64)?;
        if !SECRET_RANGE.contains(&bytes.len()) {
            return Err(BadSecret::Length(bytes.len()));
        }
        Ok(Key::Shared(bytes))
    }

    /// `v1` or `v1a`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        match self {
            Key::Shared(_) => "v1",
            Key::Own(_) => "v1a",
        }
    }

    /// The bytes to be sealed.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Key::Shared(bytes) | Key::Own(bytes) => bytes,
        }
    }

    /// From its scheme and bytes.
    #[must_use]
    pub fn of(scheme: &str, bytes: Vec<u8>) -> Key {
        if scheme == "v1a" { Key::Own(bytes) } else { Key::Shared(bytes) }
    }

    /// What the receiver is given: the secret itself, or the public half. A secret is shown once.
    ///
    /// # Errors
    /// [`BadSecret::Pair`].
    pub fn for_receiver(&self) -> Result<String, BadSecret> {
        match self {
            Key::Shared(bytes) => Ok(format!("whsec_{}", STANDARD.encode(bytes))),
            Key::Own(bytes) => {
                let pair = Ed25519KeyPair::from_pkcs8(bytes).map_err(|_| BadSecret::Pair)?;
                Ok(format!("whpk_{}", STANDARD.encode(pair.public_key().as_ref())))
            }
        }
    }

    /// One signature, such as `v1,g0hM9…`.
    ///
    /// # Errors
    /// [`BadSecret::Pair`].
    pub fn sign(&self, id: &str, timestamp_s: i64, body: &[u8]) -> Result<String, BadSecret> {
        let content = content(id, timestamp_s, body);
        match self {
            Key::Shared(bytes) => {
                let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, bytes), &content);
                Ok(format!("v1,{}", STANDARD.encode(tag)))
            }
            Key::Own(bytes) => {
                let pair = Ed25519KeyPair::from_pkcs8(bytes).map_err(|_| BadSecret::Pair)?;
                Ok(format!("v1a,{}", STANDARD.encode(pair.sign(&content))))
            }
        }
    }
}

/// The value of `webhook-signature`: one signature for each key, in their order.
///
/// # Errors
/// [`BadSecret::Pair`].
pub fn header(keys: &[Key], id: &str, timestamp_s: i64, body: &[u8]) -> Result<String, BadSecret> {
    let signatures: Result<Vec<String>, BadSecret> = keys.iter().map(|key| key.sign(id, timestamp_s, body)).collect();
    Ok(signatures?.join(" "))
}

/// Whether one of the signatures in a header is by this secret.
#[must_use]
pub fn is_signed_by(secret: &Key, id: &str, timestamp_s: i64, body: &[u8], header: &str) -> bool {
    let Key::Shared(bytes) = secret else { return false };
    let key = hmac::Key::new(hmac::HMAC_SHA256, bytes);
    let content = content(id, timestamp_s, body);
    header
        .split(' ')
        .filter_map(|one| one.strip_prefix("v1,"))
        .any(|encoded| STANDARD.decode(encoded).is_ok_and(|tag| hmac::verify(&key, &content, &tag).is_ok()))
}

/// Whether one of the signatures in a header is by the key whose public half, `whpk_…`, this is.
#[must_use]
pub fn is_signed_by_public(public: &str, id: &str, timestamp_s: i64, body: &[u8], header: &str) -> bool {
    let Some(Ok(public)) = public.strip_prefix("whpk_").map(|text| STANDARD.decode(text)) else { return false };
    let key = UnparsedPublicKey::new(&ED25519, public);
    let content = content(id, timestamp_s, body);
    header
        .split(' ')
        .filter_map(|one| one.strip_prefix("v1a,"))
        .any(|encoded| STANDARD.decode(encoded).is_ok_and(|signature| key.verify(&content, &signature).is_ok()))
}

fn content(id: &str, timestamp_s: i64, body: &[u8]) -> Vec<u8> {
    let mut content = format!("{id}.{timestamp_s}.").into_bytes();
    content.extend_from_slice(body);
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    /// The first is that of the public libraries.
    const VECTORS: [(&str, i64, &str, &str); 2] = [
        (
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
        (
            "msg_01K0PLUMB1NE00000000000000",
            1_796_083_200,
            r#"{"type":"ping","timestamp":"2026-12-01T00:00:00Z","data":{"message":"hello"}}"#,
            "v1,CXzL8cjx5sfTi/8sHqHqPe2/V5AJ3bRK+7fJCSfoXLI=",
        ),
    ];

    #[test]
    fn both_vectors_come_out() {
        let key = Key::parse(SECRET).unwrap();
        for (id, at, body, expected) in VECTORS {
            assert_eq!(key.sign(id, at, body.as_bytes()).unwrap(), expected, "{id}");
            assert!(is_signed_by(&key, id, at, body.as_bytes(), expected));
            assert!(!is_signed_by(&key, id, at + 1, body.as_bytes(), expected));
        }
    }

    #[test]
    fn the_library_of_the_standard_accepts_what_we_sign_with_either_of_two_secrets() {
        let (old, new) = (Key::parse(SECRET).unwrap(), Key::new_shared().unwrap());
        let now = chrono::Utc::now().timestamp();
        let body = br#"{"type":"ping"}"#;
        let both = header(&[new.clone(), old.clone()], "msg_1", now, body).unwrap();
        for key in [&old, &new] {
            let verifier = standardwebhooks::Webhook::new(&key.for_receiver().unwrap()).unwrap();
            let mut headers = http::HeaderMap::new();
            headers.insert("webhook-id", "msg_1".parse().unwrap());
            headers.insert("webhook-timestamp", now.to_string().parse().unwrap());
            headers.insert("webhook-signature", both.parse().unwrap());
            assert!(verifier.verify(body, &headers).is_ok());
            assert!(verifier.verify(br#"{"type":"pong"}"#, &headers).is_err());
        }
    }

    #[test]
    fn a_public_key_verifies_what_the_private_one_signed() {
        let (own, other) = (Key::new_own().unwrap(), Key::new_own().unwrap());
        let signature = own.sign("msg_1", 7, b"x").unwrap();
        assert!(signature.starts_with("v1a,"));
        let public = own.for_receiver().unwrap();
        assert!(public.starts_with("whpk_"));
        assert!(is_signed_by_public(&public, "msg_1", 7, b"x", &signature));
        assert!(!is_signed_by_public(&public, "msg_1", 7, b"y", &signature));
        assert!(!is_signed_by_public(&other.for_receiver().unwrap(), "msg_1", 7, b"x", &signature));
    }

    #[test]
    fn what_is_no_secret_is_said_to_be_none_and_none_is_ever_printed() {
        assert_eq!(Key::parse("hunter2"), Err(BadSecret::Prefix));
        assert_eq!(Key::parse("whsec_!"), Err(BadSecret::Base64));
        assert_eq!(Key::parse("whsec_AAAA"), Err(BadSecret::Length(3)));
        assert_eq!(format!("{:?}", Key::parse(SECRET).unwrap()), "***");
    }
}
