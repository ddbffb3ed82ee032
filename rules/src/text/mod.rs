//! Small grammars that rules of every family ask for: hosts, absolute URLs, media types, instants, versions, templates; and how messages
//! repeat a value.
//!
//! All of them look at text where it stands: nothing is resolved, decoded further than needed, or kept.

pub mod challenge;
mod host;
mod instant;
mod media_type;
mod placeholder;
mod quote;
pub mod suffix;
mod template;
mod url;
mod version;

pub use host::{host_is_loopback, ip_literal, is_public_host, percent_decoded, registrable_domain, same_site};
pub use instant::Instant;
pub use media_type::MediaType;
pub use placeholder::is_placeholder;
pub use quote::quote;
pub use template::{Variable, variables, with_samples};
pub use url::{AbsoluteUrl, is_absolute_uri};
pub use version::{is_semver, is_version_range, version_core};
