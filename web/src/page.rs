//! What all pages share: the visit they answer, the frame around them, and how a page struct becomes an answer.
//!
//! A page struct is both the template's context and the JSON: whoever asks for `application/json` gets the struct itself.

use std::convert::Infallible;

use askama::Template;
use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde::Serialize;

use crate::WebState;
use crate::assets::{ICON_URL, SCRIPT_URL, STYLE_URL};
use crate::cache::Cache;
use crate::error::Error;
use crate::export;
use crate::operator::is_operator;

/// The forms of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Html,
    /// For machines: `Accept: application/json`, or `format=json` in the query, so that a link can ask for it.
    Json,
    /// The rows of the page as RFC 4180 has them: `format=csv` or `Accept: text/csv`.
    Csv,
    /// The rows of the page, one JSON object a line: `format=jsonl`.
    JsonLines,
}

impl Form {
    fn asked_for(headers: &HeaderMap, query: &str) -> Self {
        let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let by_query = query.split('&').find_map(|pair| match pair.strip_prefix("format=")? {
            "json" => Some(Self::Json),
            "csv" => Some(Self::Csv),
            "jsonl" => Some(Self::JsonLines),
            _ => None,
        });
        if let Some(form) = by_query {
            return form;
        }
        let preferred =
            accept.split(',').map(|range| range.split(';').next().unwrap_or_default().trim()).find_map(|range| {
                match range {
                    "application/json" | "application/problem+json" => Some(Self::Json),
                    "text/csv" => Some(Self::Csv),
                    "application/jsonl" | "application/x-ndjson" => Some(Self::JsonLines),
                    "text/html" | "application/xhtml+xml" => Some(Self::Html),
                    _ => None,
                }
            });
        preferred.unwrap_or(Self::Html)
    }
}

/// Which colours the reader chose; by default those of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// As the system says.
    #[default]
    System,
    /// Always light.
    Light,
    /// Always dark.
    Dark,
}

impl Theme {
    /// As it stands in the cookie, in the form and in `data-theme`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The theme of that name; unknown names are the system's.
    #[must_use]
    pub fn named(name: &str) -> Self {
        match name {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::System,
        }
    }

    fn of_cookies(headers: &HeaderMap) -> Self {
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|cookies| cookies.split(';'))
            .find_map(|cookie| cookie.trim().strip_prefix("theme="))
            .map_or(Self::System, Self::named)
    }
}

/// The place of a page in the main navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// `/`
    Overview,
    /// `/targets` and below.
    Targets,
    /// `/rules` and below.
    Rules,
    /// `/prevalence`
    Prevalence,
    /// `/regressions` and below.
    Regressions,
    /// `/crawls` and below.
    Crawls,
    /// `/alerts`, `/webhooks` and what keeps them quiet.
    Alerts,
    /// `/about/crawler`
    About,
    /// `/settings` and below.
    Settings,
    /// Anywhere else.
    Elsewhere,
}

/// One request as pages see it: when it came, which form it wants, and what stands around the answer.
#[derive(Debug, Clone)]
pub struct Visit {
    /// The moment of the request, in Unix seconds: all "ago" on one page counts from here.
    pub now: i64,
    /// HTML or JSON.
    pub form: Form,
    /// What stands around the page.
    pub frame: Frame,
}

impl FromRequestParts<WebState> for Visit {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &WebState) -> Result<Self, Infallible> {
        let query = parts.uri.query().unwrap_or_default();
        let site = state.site();
        let frame = Frame {
            instance: site.instance_name.clone(),
            is_sample: site.is_sample,
            demonstration: None,
            theme: Theme::of_cookies(&parts.headers),
            place: Place::Elsewhere,
            path: parts.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
            form_path: (parts.uri.path().to_owned(), query.to_owned()),
            json_url: formed(parts.uri.path(), query, "json"),
            origin: origin(&site.public_url, &parts.headers),
            search: String::new(),
            is_operator: is_operator(parts),
        };
        let is_for_people = !["/api/", "/badges/", "/feeds/"].iter().any(|start| parts.uri.path().starts_with(start));
        let frame = match is_for_people {
            true => Frame { demonstration: state.store.demonstration().await.ok().flatten(), ..frame },
            false => frame,
        };
        let is_for_programs =
            ["/api/", "/v0.1/", "/openapi.json"].iter().any(|start| parts.uri.path().starts_with(start));
        let form = if is_for_programs { Form::Json } else { Form::asked_for(&parts.headers, query) };
        Ok(Self { now: (state.now)(), form, frame })
    }
}

/// Where this installation is reached: as it is set, or else as the request names it. What is no plain name of a host is not
/// repeated.
pub(crate) fn origin(public_url: &str, headers: &HeaderMap) -> String {
    if !public_url.is_empty() {
        return public_url.to_owned();
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    let is_host = !host.is_empty() && host.len() < 256 && host.chars().all(is_plain);
    if is_host { format!("http://{host}") } else { String::new() }
}

/// The same address in another form.
fn formed(path: &str, query: &str, form: &str) -> String {
    let kept: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("format=")).collect();
    if kept.is_empty() { format!("{path}?format={form}") } else { format!("{path}?{}&format={form}", kept.join("&")) }
}

impl Visit {
    /// The frame of a page that stands at `place`.
    #[must_use]
    pub fn framed(&self, place: Place) -> Frame {
        Frame { place, ..self.frame.clone() }
    }

    /// The page as an answer in the form that was asked for.
    pub fn answer<T: Template + Serialize>(&self, page: &T, cache: Cache) -> Result<Response, Error> {
        let body = match self.form {
            Form::Json => Json(page).into_response(),
            Form::Html => Html(page.render()?).into_response(),
            Form::Csv | Form::JsonLines => {
                let reason = "asks for rows, and this page is no list; json is to be had".to_owned();
                return Err(Error::BadQuery { field: "format", reason });
            }
        };
        Ok(self.with_headers(StatusCode::OK, body, cache))
    }

    /// The page, or its rows as a table or line by line.
    pub fn answer_rows<T: Template + Serialize, R: Serialize>(
        &self,
        page: &T,
        rows: &[R],
        cache: Cache,
    ) -> Result<Response, Error> {
        let (kind, body) = match self.form {
            Form::Html | Form::Json => return self.answer(page, cache),
            Form::Csv => ("text/csv; charset=utf-8; header=present", export::csv(rows)?),
            Form::JsonLines => ("application/jsonl", export::json_lines(rows)?),
        };
        Ok(self.with_headers(StatusCode::OK, ([(header::CONTENT_TYPE, kind)], body).into_response(), cache))
    }

    /// Adds what every page says about itself to the caches on the way.
    pub fn with_headers(&self, status: StatusCode, mut response: Response, cache: Cache) -> Response {
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, cache.header());
        headers.insert(header::VARY, HeaderValue::from_static("accept, cookie"));
        response
    }
}

/// What stands around every page.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The name of this installation.
    pub instance: String,
    /// Whether the targets are the built-in sample.
    pub is_sample: bool,
    /// What the data are made of, in words, where they are a demonstration.
    pub demonstration: Option<String>,
    /// Chosen colours.
    pub theme: Theme,
    /// Which entry of the navigation is the current one.
    pub place: Place,
    /// Path and query of this page: where the theme form leads back to.
    pub path: String,
    /// Path and query of this page, apart.
    form_path: (String, String),
    /// This page as JSON.
    pub json_url: String,
    /// The address of this installation, for what is taken elsewhere: `https://plumbline.example`.
    pub origin: String,
    /// What stands in the search field.
    pub search: String,
    /// Whether the visitor may change anything, so that buttons are shown.
    pub is_operator: bool,
}

impl Frame {
    /// Address of the stylesheet.
    #[must_use]
    pub fn style_url(&self) -> &str {
        &STYLE_URL
    }

    /// Address of the script.
    #[must_use]
    pub fn script_url(&self) -> &str {
        &SCRIPT_URL
    }

    /// This page in another form: `csv`, `jsonl`.
    #[must_use]
    pub fn form_url(&self, form: &str) -> String {
        formed(&self.form_path.0, &self.form_path.1, form)
    }

    /// Address of the icon.
    #[must_use]
    pub fn icon_url(&self) -> &str {
        &ICON_URL
    }

    /// The main navigation: address, word, and whether this page belongs to it.
    #[must_use]
    pub fn navigation(&self) -> [(&'static str, &'static str, bool); 7] {
        [
            ("/", "Overview", Place::Overview),
            ("/targets", "Targets", Place::Targets),
            ("/rules", "Rules", Place::Rules),
            ("/prevalence", "Prevalence", Place::Prevalence),
            ("/regressions", "Regressions", Place::Regressions),
            ("/crawls", "Crawls", Place::Crawls),
            ("/alerts", "Alerts", Place::Alerts),
        ]
        .map(|(url, word, place)| (url, word, place == self.place))
    }

    /// The themes on offer and whether each is the chosen one.
    #[must_use]
    pub fn themes(&self) -> [(&'static str, bool); 3] {
        [Theme::System, Theme::Light, Theme::Dark].map(|theme| (theme.name(), theme == self.theme))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_known_media_type_decides_the_form() {
        for (accept, query, form) in [
            ("application/json", "", Form::Json),
            ("text/html,application/xhtml+xml,application/json;q=0.9", "", Form::Html),
            ("application/json, text/plain, */*", "", Form::Json),
            ("*/*", "", Form::Html),
            ("text/html", "q=x&format=json", Form::Json),
            ("text/html", "q=format=json", Form::Html),
            ("text/html", "format=csv", Form::Csv),
            ("text/csv", "", Form::Csv),
            ("text/html", "format=jsonl&q=x", Form::JsonLines),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_str(accept).unwrap())]);
            assert_eq!(Form::asked_for(&headers, query), form, "{accept} ? {query}");
        }
    }

    #[test]
    fn the_address_of_the_installation_is_the_set_one_or_the_one_that_was_asked() {
        let asked = |host: &'static str| HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))]);
        assert_eq!(origin("https://plumbline.example", &asked("10.0.0.1:8080")), "https://plumbline.example");
        assert_eq!(origin("", &asked("127.0.0.1:8080")), "http://127.0.0.1:8080");
        assert_eq!(origin("", &asked("[::1]:8080")), "http://[::1]:8080");
        for hostile in ["x)](javascript:alert(1)", "a b", "x\"onload=", ""] {
            assert_eq!(origin("", &asked(hostile)), "", "{hostile}");
        }
    }

    #[test]
    fn the_json_address_keeps_the_filters() {
        assert_eq!(formed("/targets", "headline=blocked", "json"), "/targets?headline=blocked&format=json");
        assert_eq!(formed("/targets", "format=json&q=x", "csv"), "/targets?q=x&format=csv");
        assert_eq!(formed("/", "", "json"), "/?format=json");
    }

    #[test]
    fn the_theme_is_read_among_other_cookies() {
        let headers = HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static("a=b; theme=dark; c=d"))]);
        assert_eq!(Theme::of_cookies(&headers), Theme::Dark);
        let headers = HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static("theme=<script>"))]);
        assert_eq!(Theme::of_cookies(&headers), Theme::System);
    }
}
