//! The only way out: every request of the process goes through here.
//!
//! - [`guard`]: which addresses may be called; asked for each hop, and again for each address a name resolves to.
//! - [`client`]: one ask becomes one or more recorded exchanges and a bounded body.
//! - [`limits`]: bytes and time.
//! - `receiver`: one message to a receiver of webhooks.
//! - [`politeness`]: whose turn it is at a host.
//! - `robots`: what a host asks crawlers not to fetch.
//! - [`outcome`]: from exchanges to how far we came.
//!
//! What a target does wrong is data in the exchanges. A [`NetError`] means that we failed.

mod ask;
mod body;
mod certificate;
pub mod client;
mod failure;
pub mod guard;
pub mod limits;
mod networks;
pub mod outcome;
pub mod politeness;
mod receiver;
mod record;
mod redirect;
mod resolver;
mod robots;
mod stream;

use std::net::SocketAddr;
use std::path::PathBuf;

use plumbline_rules::settings;
use plumbline_rules::settings::Described;

pub use ask::{Ask, Fetched, Header, Patience, Validators, Way, Wire};
pub use client::{Client, Opened};
pub use guard::Guard;
pub use limits::{BodyKind, ByteLimits, TimeLimits};
pub use networks::Networks;
pub use outcome::{Asked, outcome};
pub use politeness::{Manners, Politeness};
pub use receiver::Told;
pub use stream::{Events, Listen, Until};

settings! {
    /// How the network is used.
    pub struct NetSettings {
        /// Where people who wonder about our requests find us: a web or mail address, sent in the `User-Agent`.
        pub contact: String = env!("CARGO_PKG_REPOSITORY").to_owned(),
        /// Networks that may be called although they are not public, such as `10.0.0.0/8` or a single address.
        pub allow_networks: Networks = Networks::default(),
        /// Name servers as `address:port`. Empty: those of the system.
        pub name_servers: Vec<SocketAddr> = Vec::new(),
        /// PEM file with certificates of authorities that are trusted beside those of the system. Empty: none.
        pub ca_file: String = String::new(),
        /// Whether robots.txt is asked for addresses that are neither well-known places nor listed endpoints.
        pub robots: bool = true,
        /// Pace and concurrency.
        pub manners: Manners = Manners::default(),
        /// Most decoded bytes that are read of a body, by its kind. A body of exactly the limit is whole.
        pub bytes: ByteLimits = ByteLimits::default(),
        /// How long is waited for each part of one exchange. Waiting for our own turn does not count.
        pub time: TimeLimits = TimeLimits::default(),
    }
}

impl NetSettings {
    /// Its tables with what their fields mean, by the path they have in the settings file.
    #[must_use]
    pub fn sections() -> [(&'static str, &'static [(&'static str, &'static str)]); 4] {
        [
            ("net", NetSettings::FIELDS),
            ("net.manners", Manners::FIELDS),
            ("net.bytes", ByteLimits::FIELDS),
            ("net.time", TimeLimits::FIELDS),
        ]
    }
}

/// What can go wrong with us. What goes wrong with a target is recorded in its exchanges instead.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// The contact cannot be sent in a header.
    #[error("the contact `{0}` cannot be sent in a User-Agent header")]
    Contact(String),
    /// The file of trusted certificates cannot be read.
    #[error("cannot read the certificates in {}", .path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file of trusted certificates holds none.
    #[error("{} holds no certificate in PEM form", .0.display())]
    NoCertificate(PathBuf),
    /// The HTTP client cannot be set up.
    #[error("cannot set up the HTTP client")]
    Setup(#[source] reqwest::Error),
    /// There are no certificates to trust, so nothing can be said about a server that speaks TLS.
    #[error("this machine trusts no certificate authority: install its certificates or set `net.ca_file`")]
    NoTrust,
    /// This machine ran out of something, or forbids calling out.
    #[error("this machine cannot call out: {0}")]
    Machine(String),
    /// The client is being shut down.
    #[error("the client is shut down")]
    Closed(#[from] tokio::sync::AcquireError),
}
