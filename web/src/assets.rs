//! The stylesheet, the script and the icon, inside the binary. Their addresses carry a hash of their bytes, so they are kept for ever and
//! a new release is never shown with an old style.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::cache::Cache;

const STYLE: &str = include_str!("../static/plumbline.css");
const SCRIPT: &str = include_str!("../static/plumbline.js");
const ICON: &str = include_str!("../static/favicon.svg");

/// Where the stylesheet is served.
pub static STYLE_URL: LazyLock<String> = LazyLock::new(|| format!("/static/plumbline-{:016x}.css", fingerprint(STYLE)));
/// Where the script is served. Every page is whole without it.
pub static SCRIPT_URL: LazyLock<String> =
    LazyLock::new(|| format!("/static/plumbline-{:016x}.js", fingerprint(SCRIPT)));
/// Where the icon is served.
pub static ICON_URL: LazyLock<String> = LazyLock::new(|| format!("/static/plumbline-{:016x}.svg", fingerprint(ICON)));

/// `GET /static/{file}`.
pub async fn file(Path(file): Path<String>) -> Response {
    let asked = format!("/static/{file}");
    let (body, kind) = match asked {
        _ if asked == *STYLE_URL => (STYLE, "text/css; charset=utf-8"),
        _ if asked == *SCRIPT_URL => (SCRIPT, "text/javascript; charset=utf-8"),
        _ if asked == *ICON_URL => (ICON, "image/svg+xml"),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    (
        [
            (header::CONTENT_TYPE, kind.parse().expect("a literal media type")),
            (header::CACHE_CONTROL, Cache::Forever.header()),
        ],
        body,
    )
        .into_response()
}

/// `GET /favicon.ico`, which browsers ask for unasked.
pub async fn icon() -> Response {
    ([(header::CONTENT_TYPE, "image/svg+xml")], ICON).into_response()
}

/// FNV-1a over the bytes: enough to tell two releases of one file apart, and nothing more is asked of it.
pub fn fingerprint(content: &str) -> u64 {
    content
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stylesheet_keeps_within_its_budget() {
        assert!(STYLE.len() <= 28 * 1024, "{} bytes", STYLE.len());
    }

    #[test]
    fn the_script_keeps_within_its_budget_and_calls_nobody_else() {
        assert!(SCRIPT.len() <= 15_000, "{} bytes", SCRIPT.len());
        for forbidden in ["http:", "https:", "innerHTML", "eval(", "import ", "document.write"] {
            assert!(!SCRIPT.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn the_stylesheet_asks_nobody_for_anything() {
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    }
}
