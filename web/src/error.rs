//! What a visitor sees when a page cannot be given.
//!
//! Handlers return [`Error`]. It becomes a status with the error beside it; [`explain`], the outermost layer that knows the visit,
//! turns every such answer, and every bare 4xx or 5xx of the layers below, into a page that says what happened and where to go on,
//! or into an RFC 9457 problem for machines. What went wrong inside is logged with the id of the request and never shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use askama::Template;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use plumbline_alerts::desk::Refused;
use plumbline_alerts::settings::BadSetting;
use plumbline_store::query::QueryError;
use serde::Serialize;

use crate::WebState;
use crate::cache::Cache;
use crate::filters;
use crate::page::{Form, Frame, Visit};

/// Why there is no page.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The address names something we do not have.
    #[error("there is no {what} {asked}")]
    NotFound {
        /// The kind of thing: `target`, `rule`.
        what: &'static str,
        /// What was asked for.
        asked: String,
    },
    /// A field of the query cannot be read.
    #[error("{field} {reason}")]
    BadQuery {
        /// The name of the field.
        field: &'static str,
        /// What is wrong with it, as the end of a sentence that begins with the field.
        reason: String,
    },
    /// A word of a query cannot be read.
    #[error("the query cannot be read: {0}")]
    BadWord(QueryError),
    /// A form or body cannot be used; a sentence.
    #[error("{0}")]
    BadForm(String),
    /// It contradicts what is there; a sentence.
    #[error("{0}")]
    Conflict(String),
    /// A write with a key that was used for it before, and why its first answer cannot be given.
    #[error("{0}")]
    Repeated(&'static str),
    /// Its `Idempotency-Key` was that of another request.
    #[error("the key was that of another request")]
    OtherRequest,
    /// Only the person at this machine may do that.
    #[error("only the person at this machine may do that")]
    NotYours,
    /// No token, or one that does not hold.
    #[error("a token is needed")]
    NoToken,
    /// The token does not allow that; the scope that it lacks.
    #[error("the token lacks the scope {0}")]
    Lacks(&'static str),
    /// The token is limited to one owner.
    #[error("the token is limited to {0}")]
    NotTheirs(String),
    /// We failed, and not the store.
    #[error("{0}")]
    Ours(String),
    /// The store failed.
    #[error("the store failed")]
    Store(#[source] Arc<plumbline_store::Error>),
    /// What was asked for could not be written.
    #[error("rows could not be written")]
    Rows(#[source] Arc<serde_json::Error>),
    /// More was asked than anybody may ask in a minute.
    #[error("too many requests")]
    TooMany,
    /// A file could not be read, or one to be handed out not be made.
    #[error("a file failed")]
    File(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// A template failed.
    #[error("a page could not be written")]
    Template(#[source] Arc<askama::Error>),
}

impl From<plumbline_store::Error> for Error {
    fn from(error: plumbline_store::Error) -> Self {
        Self::Store(Arc::new(error))
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Rows(Arc::new(error))
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::File(Arc::new(error))
    }
}

#[cfg(feature = "parquet")]
impl From<parquet::errors::ParquetError> for Error {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::File(Arc::new(error))
    }
}

impl From<QueryError> for Error {
    fn from(error: QueryError) -> Self {
        Self::BadWord(error)
    }
}

impl From<Refused> for Error {
    fn from(error: Refused) -> Self {
        match error {
            Refused::Bad(why) => Self::BadForm(sentence(&why)),
            Refused::Missing(asked) => Self::NotFound { what: "webhook", asked },
            Refused::Taken(_) | Refused::ReadOnly(_) | Refused::Rotating(_) => {
                Self::Conflict(sentence(&error.to_string()))
            }
            Refused::Store(error) => error.into(),
            Refused::Vault(error) => Self::Ours(error.to_string()),
            Refused::Key(error) => Self::Ours(error.to_string()),
        }
    }
}

impl From<BadSetting> for Error {
    fn from(why: BadSetting) -> Self {
        Self::BadForm(sentence(&why.0))
    }
}

/// A clause as a sentence of its own.
fn sentence(clause: &str) -> String {
    format!("{}.", crate::text::opened(clause.trim_end_matches('.')))
}

impl From<askama::Error> for Error {
    fn from(error: askama::Error) -> Self {
        Self::Template(Arc::new(error))
    }
}

impl Error {
    fn status(&self) -> StatusCode {
        match self {
            Self::NotFound { .. } => StatusCode::NOT_FOUND,
            Self::BadQuery { .. } | Self::BadWord(_) | Self::BadForm(_) => StatusCode::BAD_REQUEST,
            Self::Conflict(_) | Self::Repeated(_) => StatusCode::CONFLICT,
            Self::OtherRequest => StatusCode::UNPROCESSABLE_ENTITY,
            Self::NoToken => StatusCode::UNAUTHORIZED,
            Self::NotYours | Self::Lacks(_) | Self::NotTheirs(_) => StatusCode::FORBIDDEN,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Store(_) | Self::Template(_) | Self::Rows(_) | Self::File(_) | Self::Ours(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// The page in place of the one that was asked for.
#[derive(Template, Serialize)]
#[template(path = "error.html")]
struct ErrorPage {
    #[serde(skip)]
    frame: Frame,
    /// The status code.
    status: u16,
    /// What happened, in a sentence.
    title: String,
    /// What it means or what to do, in a sentence.
    detail: String,
    /// The query and the word of it that is to blame.
    #[serde(skip_serializing_if = "Option::is_none")]
    word: Option<QueryError>,
    /// Find this in the log.
    request_id: String,
    #[serde(skip)]
    ways_on: Vec<(&'static str, &'static str)>,
}

/// Gives each request an id, logs our own failures, and answers with a page where there would be none.
pub async fn explain(State(_): State<WebState>, visit: Visit, request: Request, next: Next) -> Response {
    let request_id = next_request_id();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = next.run(request).await;
    if response.status().is_server_error() {
        let error = response.extensions().get::<Error>();
        let cause = error.map(|e| format!("{:#}", Chain(e))).unwrap_or_default();
        tracing::error!(request_id, %method, path, status = response.status().as_u16(), "could not answer {method} {path}: {cause}");
    }
    let is_bare =
        response.headers().get(header::CONTENT_TYPE).is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    if is_error && is_bare && !path.starts_with("/static/") && !matches!(path.as_str(), "/healthz" | "/readyz") {
        let mut explained = error_page(&visit, &response, &request_id);
        for name in ["retry-after", "ratelimit", "ratelimit-policy"] {
            if let Some(value) = response.headers().get(name) {
                explained.headers_mut().insert(name, value.clone());
            }
        }
        response = explained;
    }
    response
        .headers_mut()
        .insert("x-request-id", HeaderValue::from_str(&request_id).expect("an id is digits and letters"));
    response
}

fn error_page(visit: &Visit, response: &Response, request_id: &str) -> Response {
    let status = response.status();
    let error = response.extensions().get::<Error>();
    let (title, detail, ways_on) = explained(status, error);
    let page = ErrorPage {
        frame: visit.frame.clone(),
        status: status.as_u16(),
        title,
        detail,
        word: error.and_then(|error| if let Error::BadWord(word) = error { Some(word.clone()) } else { None }),
        request_id: request_id.to_owned(),
        ways_on,
    };
    let body = match visit.form {
        Form::Json | Form::Csv | Form::JsonLines => {
            ([(header::CONTENT_TYPE, "application/problem+json")], Json(&page).into_response().into_body())
                .into_response()
        }
        Form::Html => Html(page.render().unwrap_or_else(|_| page.title.clone())).into_response(),
    };
    let mut response = visit.with_headers(status, body, Cache::Never);
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

type Explanation = (String, String, Vec<(&'static str, &'static str)>);

fn explained(status: StatusCode, error: Option<&Error>) -> Explanation {
    let home = ("/", "Overview");
    match (error, status) {
        (Some(Error::NotFound { what, asked }), _) => {
            let list = match *what {
                "rule" => ("/rules", "All rules"),
                "crawl" => ("/crawls", "All crawls"),
                _ => ("/targets", "All targets"),
            };
            let asked = crate::text::visible(asked, 120);
            (
                format!("There is no {what} “{asked}” here."),
                "It may be an old link, or one letter off.".to_owned(),
                vec![list, home],
            )
        }
        (Some(Error::BadQuery { field, reason }), _) => (
            format!("The field “{field}” {}.", crate::text::visible(reason, 200)),
            "Nothing was looked up. Change the field or leave it out.".to_owned(),
            vec![("/targets", "All targets"), home],
        ),
        (Some(Error::BadWord(error)), _) => (
            error.says.clone(),
            "Nothing was looked up. Change the marked word or leave it out.".to_owned(),
            vec![("/targets", "All targets"), home],
        ),
        (Some(Error::BadForm(why)), _) => (
            crate::text::visible(why, 400),
            "Nothing was changed. Go back, mend it, and send it again.".to_owned(),
            vec![home],
        ),
        (Some(Error::Conflict(why)), _) => {
            (crate::text::visible(why, 400), "Nothing was changed.".to_owned(), vec![("/webhooks", "Webhooks"), home])
        }
        (Some(Error::Repeated(why)), _) => (
            (*why).to_owned(),
            "Nothing was done again. Look whether it is there before you send it with another key.".to_owned(),
            vec![("/api", "The API"), home],
        ),
        (Some(Error::OtherRequest), _) => (
            "The Idempotency-Key was that of another request.".to_owned(),
            "Nothing was changed. A key stands for one address and one body for a day; send this with a key of its own."
                .to_owned(),
            vec![("/api", "The API"), home],
        ),
        (Some(Error::NoToken), _) => (
            "A token is needed that holds.".to_owned(),
            "Send `Authorization: Bearer plb_…`, or type it into the form; `plumbline token create --scope alerts:write` makes \
             one. At the machine that Plumbline runs on none is needed."
                .to_owned(),
            vec![home],
        ),
        (Some(Error::Lacks(scope)), _) => (
            "The token does not allow that.".to_owned(),
            format!("It lacks the scope {scope}."),
            vec![home],
        ),
        (Some(Error::NotTheirs(owner)), _) => (
            "The token is limited to one owner.".to_owned(),
            format!("What it touches must be limited by owner:{}.", crate::text::visible(owner, 80)),
            vec![home],
        ),
        (Some(Error::TooMany), _) => (
            "That were too many requests in a minute.".to_owned(),
            "The header Retry-After says when to go on. Whole lists can be had at once under /api/v1/exports."
                .to_owned(),
            vec![("/api", "The API"), home],
        ),
        (Some(Error::NotYours), _) => (
            "Only the person at this machine may do that.".to_owned(),
            "Ask again from the machine that Plumbline runs on, at its loopback address and not through a proxy."
                .to_owned(),
            vec![home],
        ),
        (_, StatusCode::NOT_FOUND) => (
            "There is no page at this address.".to_owned(),
            "It may be an old link, or one letter off. The search field finds targets by the beginning of a word."
                .to_owned(),
            vec![home, ("/targets", "All targets"), ("/rules", "All rules")],
        ),
        (_, StatusCode::METHOD_NOT_ALLOWED) => (
            "This page can only be read.".to_owned(),
            "The address is right, the method is not.".to_owned(),
            vec![home],
        ),
        (_, status) if status.is_client_error() => (
            "We cannot read this request.".to_owned(),
            "Something in the address or the form is not what this page expects.".to_owned(),
            vec![home, ("/targets", "All targets")],
        ),
        (_, StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT | StatusCode::SERVICE_UNAVAILABLE) => (
            "This took too long, and we stopped.".to_owned(),
            "The fault is ours, not a target's. Try again in a moment.".to_owned(),
            vec![home],
        ),
        _ => (
            "Something broke on our side.".to_owned(),
            "The fault is ours, not a target's. It is in our log under the number below.".to_owned(),
            vec![home],
        ),
    }
}

/// Ids that tell the requests of one process apart, and the processes by their start.
fn next_request_id() -> String {
    static START: std::sync::LazyLock<u64> = std::sync::LazyLock::new(|| {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
    });
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{:x}-{}", *START, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// An error and what caused it, as one sentence from the outside in.
struct Chain<'e>(&'e (dyn std::error::Error + 'static));

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
