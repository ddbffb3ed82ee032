//! How long an answer may be kept, by name instead of by header string.

use axum::http::HeaderValue;

/// What a browser and the caches before it may do with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// The address contains a hash of the bytes, so the bytes never change: keep for a year.
    Forever,
    /// A document under its own content hash. Its findings move, so the page is asked for again, but soon after is early enough.
    Minute,
    /// A view of the present. It may be stored, but must be asked for again before it is shown, so that nobody reads an old count.
    Fresh,
    /// Errors and health: never stored.
    Never,
}

impl Cache {
    /// The value of `Cache-Control`.
    #[must_use]
    pub fn header(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Forever => "public, max-age=31536000, immutable",
            Self::Minute => "public, max-age=60",
            Self::Fresh => "no-cache",
            Self::Never => "no-store",
        })
    }
}
