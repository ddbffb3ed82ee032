//! `POST /theme`: remembers light, dark or the system's colours in a cookie and leads back.

use axum::Form;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

use crate::page::Theme;

/// What the form in the footer sends.
#[derive(Debug, Deserialize)]
pub struct Choice {
    theme: String,
    #[serde(default)]
    back: String,
}

/// `POST /theme`
pub async fn choose(Form(choice): Form<Choice>) -> Response {
    let cookie = match Theme::named(&choice.theme) {
        Theme::System => "theme=; Path=/; Max-Age=0; SameSite=Lax; HttpOnly",
        Theme::Light => "theme=light; Path=/; Max-Age=31536000; SameSite=Lax; HttpOnly",
        Theme::Dark => "theme=dark; Path=/; Max-Age=31536000; SameSite=Lax; HttpOnly",
    };
    ([(header::SET_COOKIE, HeaderValue::from_static(cookie))], Redirect::to(here(&choice.back))).into_response()
}

/// A path on this site; anything that a browser might read as another site leads to the overview.
fn here(back: &str) -> &str {
    let is_path = back.starts_with('/') && !back.starts_with("//") && !back.contains('\\');
    let is_visible = back.bytes().all(|byte| byte.is_ascii_graphic());
    if is_path && is_visible { back } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_never_leaves_the_site() {
        for (back, led) in [
            ("/targets?q=a", "/targets?q=a"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("/a\r\nset-cookie: x", "/"),
            ("", "/"),
        ] {
            assert_eq!(here(back), led, "{back:?}");
        }
    }
}
