//! The key of the installation, and what is sealed with it: secrets of receivers, as the database keeps them.
//!
//! ChaCha20-Poly1305 with a random nonce before the sealed bytes. Whoever copies the database alone cannot sign as we do.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// Bytes of the key.
const KEY_BYTES: usize = 32;

/// The key of the installation. It is read, or made, when it is first needed: who has no receivers has no key.
#[derive(Clone)]
pub struct Vault {
    path: PathBuf,
    key: Arc<OnceLock<LessSafeKey>>,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// What can go wrong with the key of the installation.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The file cannot be read or made.
    #[error("the key of this installation, {}", .path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file holds no key.
    #[error("{} holds no key: it is one line of base64 for 32 bytes", .0.display())]
    NoKey(PathBuf),
    /// The random numbers of this machine failed.
    #[error("this machine gives no random numbers")]
    Random,
    /// A secret was sealed with another key.
    #[error("a secret cannot be opened: it was sealed with the key of another installation")]
    Sealed,
}

impl Vault {
    /// The key in a file; the file is made, for nobody else to read, where there is none.
    #[must_use]
    pub fn at(path: &Path) -> Vault {
        Vault { path: path.to_owned(), key: Arc::default() }
    }

    fn key(&self) -> Result<&LessSafeKey, VaultError> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let path = &self.path;
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => make(path)?,
            Err(source) => return Err(VaultError::File { path: path.clone(), source }),
        };
        let no_key = || VaultError::NoKey(path.clone());
        let bytes = STANDARD.decode(text.trim()).map_err(|_| no_key())?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes).map_err(|_| no_key())?;
        Ok(self.key.get_or_init(|| LessSafeKey::new(key)))
    }

    /// Seals a secret.
    ///
    /// # Errors
    /// [`VaultError::Random`].
    pub fn seal(&self, secret: &[u8]) -> Result<Vec<u8>, VaultError> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| VaultError::Random)?;
        let mut body = secret.to_vec();
        let sealed = self.key()?.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut body);
        sealed.map_err(|_| VaultError::Random)?;
        Ok([&nonce[..], &body[..]].concat())
    }

    /// Opens what was sealed.
    ///
    /// # Errors
    /// [`VaultError::Sealed`].
    pub fn unseal(&self, sealed: &[u8]) -> Result<Vec<u8>, VaultError> {
        let (nonce, body) = sealed.split_at_checked(NONCE_LEN).ok_or(VaultError::Sealed)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| VaultError::Sealed)?;
        let mut body = body.to_vec();
        let opened = self.key()?.open_in_place(nonce, Aad::empty(), &mut body).map_err(|_| VaultError::Sealed)?;
        Ok(opened.to_vec())
    }
}

fn make(path: &Path) -> Result<String, VaultError> {
    let mut key = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut key).map_err(|_| VaultError::Random)?;
    let text = STANDARD.encode(key);
    let failed = |source| VaultError::File { path: path.to_owned(), source };
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match opened {
        Ok(mut file) => {
            writeln!(file, "{text}").map_err(failed)?;
            tracing::info!("made a key for the secrets of webhooks in {}: keep it with the database", path.display());
            Ok(text)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => std::fs::read_to_string(path).map_err(failed),
        Err(error) => Err(failed(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_comes_back_with_the_same_key_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let sealed = Vault::at(&path).seal(b"secret").unwrap();
        assert!(!sealed.windows(6).any(|part| part == b"secret"));
        assert_eq!(Vault::at(&path).unseal(&sealed).unwrap(), b"secret");
        let other = Vault::at(&folder.path().join("other"));
        assert!(other.unseal(&sealed).is_err());
        assert!(other.unseal(b"x").is_err());
    }

    #[test]
    fn a_file_that_holds_something_else_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hello").unwrap();
        assert!(matches!(Vault::at(file.path()).seal(b"x"), Err(VaultError::NoKey(_))));
    }
}
