//! Signatures and keys in JSON: JWS (RFC 7515) with a detached payload, JWK and JWK Set (RFC 7517, 7518, 8037).
//!
//! Only checking is done here, and only with public keys that somebody hands in: nothing is fetched.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p521::ecdsa::signature::Verifier;
use ring::signature as scheme;

use crate::canonical::{Hash, content_hash};
use crate::document::{Document, Node, Type};

/// RSA keys with fewer bits prove nothing any more (RFC 7518 §3.3).
const LEAST_RSA_BITS: usize = 2048;

crate::words! {
    /// Algorithms that can be checked: asymmetric ones only (RFC 7518 §3.1, RFC 8037, RFC 9864).
    pub enum Algorithm {
        /// ECDSA over P-256 with SHA-256.
        Es256 = "ES256",
        /// ECDSA over P-384 with SHA-384.
        Es384 = "ES384",
        /// ECDSA over P-521 with SHA-512.
        Es512 = "ES512",
        /// RSASSA-PKCS1-v1_5 with SHA-256.
        Rs256 = "RS256",
        /// RSASSA-PKCS1-v1_5 with SHA-384.
        Rs384 = "RS384",
        /// RSASSA-PKCS1-v1_5 with SHA-512.
        Rs512 = "RS512",
        /// RSASSA-PSS with SHA-256.
        Ps256 = "PS256",
        /// RSASSA-PSS with SHA-384.
        Ps384 = "PS384",
        /// RSASSA-PSS with SHA-512.
        Ps512 = "PS512",
        /// Ed25519 under its older name.
        EdDsa = "EdDSA",
        /// Ed25519.
        Ed25519 = "Ed25519",
    }
}

impl Algorithm {
    /// The curve and the bytes of one of its numbers, for ECDSA.
    fn curve(self) -> Option<(&'static str, usize)> {
        match self {
            Algorithm::Es256 => Some(("P-256", 32)),
            Algorithm::Es384 => Some(("P-384", 48)),
            Algorithm::Es512 => Some(("P-521", 66)),
            _ => None,
        }
    }

    fn is_ed25519(self) -> bool {
        matches!(self, Algorithm::EdDsa | Algorithm::Ed25519)
    }

    /// Whether a key that names an algorithm of its own names this one.
    fn is_named(self, name: &str) -> bool {
        match name.parse::<Algorithm>() {
            Ok(other) => other == self || (other.is_ed25519() && self.is_ed25519()),
            Err(_) => false,
        }
    }
}

/// Decodes base64url without padding, as JOSE writes every binary value; `None` for anything else.
pub fn base64url(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// The protected header of a JWS: unpadded base64url of one JSON object in which no name stands twice. `None` for
/// anything else.
pub fn protected_header(text: &str) -> Option<Document> {
    let header = Document::read(&base64url(text)?);
    let is_object = header.root().is_some_and(|root| root.kind() == Type::Object);
    (is_object && header.duplicate_members().next().is_none() && !header.has_byte_order_mark()).then_some(header)
}

/// What is signed: the protected header exactly as received, a dot, and the payload in base64url (RFC 7515 §5.2).
pub fn signing_input(protected: &str, payload: &str) -> String {
    let mut input = String::with_capacity(protected.len() + 1 + payload.len() * 4 / 3 + 4);
    input.push_str(protected);
    input.push('.');
    URL_SAFE_NO_PAD.encode_string(payload, &mut input);
    input
}

/// One public key of a set.
#[derive(Debug, Clone)]
pub struct Key<'d> {
    node: Node<'d>,
    kty: &'d str,
}

/// The keys of a JWK Set; `None` when it is none: no object with an array `keys` of objects that each say their `kty`.
pub fn key_set(root: Node<'_>) -> Option<Vec<Key<'_>>> {
    let keys = root.get("keys").filter(|keys| keys.kind() == Type::Array)?;
    keys.items().map(Key::read).collect()
}

impl<'d> Key<'d> {
    fn read(node: Node<'d>) -> Option<Key<'d>> {
        let kty = node.get("kty")?.text()?;
        Some(Key { node, kty })
    }

    /// Where it stands in its set.
    pub fn node(&self) -> Node<'d> {
        self.node
    }

    /// Its type: `EC`, `RSA`, `OKP`, `oct`.
    pub fn kty(&self) -> &'d str {
        self.kty
    }

    /// Its name in the set.
    pub fn kid(&self) -> Option<&'d str> {
        self.says("kid")
    }

    fn says(&self, member: &str) -> Option<&'d str> {
        self.node.get(member).and_then(Node::text)
    }

    fn bytes(&self, member: &str) -> Option<Vec<u8>> {
        self.says(member).and_then(base64url)
    }

    /// Members that must never be published.
    pub fn private_members(&self) -> impl Iterator<Item = &'static str> {
        const PRIVATE: &[&str] = &["d", "p", "q", "dp", "dq", "qi", "oth", "k"];
        let node = self.node;
        PRIVATE.iter().copied().filter(move |member| node.given(member).is_some())
    }

    /// Whether a signature made with this algorithm can be one of this key: its type and curve are the algorithm's, and
    /// it says of itself neither another algorithm nor another use.
    pub fn fits(&self, algorithm: Algorithm) -> bool {
        let is_kind = match algorithm.curve() {
            Some((curve, _)) => self.kty == "EC" && self.says("crv") == Some(curve),
            None if algorithm.is_ed25519() => self.kty == "OKP" && self.says("crv") == Some("Ed25519"),
            None => self.kty == "RSA",
        };
        let operations = self.node.given("key_ops");
        is_kind
            && self.says("alg").is_none_or(|name| algorithm.is_named(name))
            && self.says("use").is_none_or(|purpose| purpose == "sig")
            && operations.is_none_or(|list| list.items().any(|operation| operation.text() == Some("verify")))
    }

    /// The length of an RSA key, when it is one that is too short to prove anything.
    pub fn weak_bits(&self) -> Option<usize> {
        let modulus = self.bytes("n").filter(|_| self.kty == "RSA")?;
        let modulus = without_leading_zeros(&modulus);
        let bits = modulus.first().map_or(0, |first| modulus.len() * 8 - first.leading_zeros() as usize);
        (bits < LEAST_RSA_BITS).then_some(bits)
    }

    /// Its thumbprint (RFC 7638): the same key has the same one under every name. `None` for a key without its parts.
    pub fn thumbprint(&self) -> Option<Hash> {
        let members: &[&str] = match self.kty {
            "EC" => &["crv", "kty", "x", "y"],
            "OKP" => &["crv", "kty", "x"],
            "RSA" => &["e", "kty", "n"],
            _ => return None,
        };
        let parts: Option<Vec<_>> = members.iter().map(|member| Some((*member, self.says(member)?))).collect();
        let parts: Vec<_> = parts?
            .into_iter()
            .map(|(member, value)| format!("\"{member}\":{}", serde_json::Value::from(value)))
            .collect();
        Some(content_hash(format!("{{{}}}", parts.join(",")).as_bytes()))
    }

    /// Whether the signature over `input` is this key's. ECDSA signatures are two numbers of fixed length (RFC 7518
    /// §3.4), never DER; weak keys verify nothing.
    pub fn verifies(&self, algorithm: Algorithm, input: &str, signature: &[u8]) -> bool {
        match algorithm {
            Algorithm::Es256 => self.verifies_point(&scheme::ECDSA_P256_SHA256_FIXED, algorithm, input, signature),
            Algorithm::Es384 => self.verifies_point(&scheme::ECDSA_P384_SHA384_FIXED, algorithm, input, signature),
            Algorithm::Es512 => self.verifies_p521(input, signature).unwrap_or(false),
            Algorithm::Rs256 => self.verifies_rsa(&scheme::RSA_PKCS1_2048_8192_SHA256, input, signature),
            Algorithm::Rs384 => self.verifies_rsa(&scheme::RSA_PKCS1_2048_8192_SHA384, input, signature),
            Algorithm::Rs512 => self.verifies_rsa(&scheme::RSA_PKCS1_2048_8192_SHA512, input, signature),
            Algorithm::Ps256 => self.verifies_rsa(&scheme::RSA_PSS_2048_8192_SHA256, input, signature),
            Algorithm::Ps384 => self.verifies_rsa(&scheme::RSA_PSS_2048_8192_SHA384, input, signature),
            Algorithm::Ps512 => self.verifies_rsa(&scheme::RSA_PSS_2048_8192_SHA512, input, signature),
            Algorithm::EdDsa | Algorithm::Ed25519 => self.bytes("x").is_some_and(|key| {
                scheme::UnparsedPublicKey::new(&scheme::ED25519, key).verify(input.as_bytes(), signature).is_ok()
            }),
        }
    }

    fn verifies_point(
        &self,
        scheme: &'static scheme::EcdsaVerificationAlgorithm,
        algorithm: Algorithm,
        input: &str,
        signature: &[u8],
    ) -> bool {
        self.point(algorithm).is_some_and(|point| {
            scheme::UnparsedPublicKey::new(scheme, point).verify(input.as_bytes(), signature).is_ok()
        })
    }

    fn verifies_p521(&self, input: &str, signature: &[u8]) -> Option<bool> {
        let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(&self.point(Algorithm::Es512)?).ok()?;
        let signature = p521::ecdsa::Signature::from_slice(signature).ok()?;
        Some(key.verify(input.as_bytes(), &signature).is_ok())
    }

    fn verifies_rsa(&self, scheme: &'static scheme::RsaParameters, input: &str, signature: &[u8]) -> bool {
        let (Some(n), Some(e)) = (self.bytes("n"), self.bytes("e")) else { return false };
        let key = scheme::RsaPublicKeyComponents { n: without_leading_zeros(&n), e: without_leading_zeros(&e) };
        key.verify(scheme, input.as_bytes(), signature).is_ok()
    }

    /// The uncompressed point of an EC key (SEC 1 §2.3.3).
    fn point(&self, algorithm: Algorithm) -> Option<Vec<u8>> {
        let (_, length) = algorithm.curve()?;
        let mut point = vec![4];
        for member in ["x", "y"] {
            let number = self.bytes(member)?;
            let number = without_leading_zeros(&number);
            point.resize(point.len() + length.checked_sub(number.len())?, 0);
            point.extend_from_slice(number);
        }
        Some(point)
    }
}

fn without_leading_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    &bytes[zeros..]
}
