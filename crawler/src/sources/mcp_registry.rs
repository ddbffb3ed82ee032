//! MCP registries: what one page of a list says, and what to do when a page does not come. The walk itself is in
//! [`crate::walk`].

use std::time::Duration;

use chrono::DateTime;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use url::Url;

/// The key of the official registry's own block in `_meta`.
pub const OFFICIAL_META: &str = "io.modelcontextprotocol.registry/official";

/// Entries asked for in one page; registries allow 1 to 100.
pub const PAGE_SIZE: u32 = 100;

/// One version of one server, as a registry lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The server's name, byte for byte.
    pub name: String,
    /// The version, any text.
    pub version: String,
    /// The `server.json` exactly as it stands in the answer.
    pub server: String,
    /// The registry's `_meta` beside it, as received.
    pub meta: Option<String>,
    /// `active`, `deprecated`, `deleted`, or whatever the registry says.
    pub status: Option<String>,
    /// What the registry says about the status.
    pub status_message: Option<String>,
    /// The registry's stamp, milliseconds since 1970 UTC.
    pub published_ms: Option<i64>,
    /// The registry's stamp, milliseconds since 1970 UTC.
    pub updated_ms: Option<i64>,
    /// Whether the registry flags it as the newest.
    pub is_latest: Option<bool>,
}

/// One answer of a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// Entries that have a name and a version.
    pub entries: Vec<Entry>,
    /// Places of entries that have none, and why.
    pub unreadable: Vec<String>,
    /// The cursor of the next page; `None` ends the walk.
    pub next: Option<String>,
}

#[derive(Deserialize)]
struct PageBody<'b> {
    #[serde(borrow)]
    servers: Vec<&'b RawValue>,
    #[serde(default)]
    metadata: Option<Value>,
}

#[derive(Deserialize)]
struct Wrapped<'b> {
    #[serde(borrow, default)]
    server: Option<&'b RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'b RawValue>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    version: String,
}

/// Reads the body of a list answer; entries may be wrapped (`server`, `_meta`) or flat, as in September 2025.
///
/// # Errors
/// A sentence when the body is no list answer at all.
pub fn read_page(body: &[u8]) -> Result<Page, String> {
    let text = std::str::from_utf8(body).map_err(|_| "the page is not UTF-8".to_owned())?;
    let body: PageBody<'_> =
        serde_json::from_str(text).map_err(|error| format!("the page is no list answer: {error}"))?;
    let mut page = Page { next: next_cursor(body.metadata.as_ref()), ..Page::default() };
    for (n, raw) in body.servers.iter().enumerate() {
        match read_entry(raw) {
            Ok(entry) => page.entries.push(entry),
            Err(why) => page.unreadable.push(format!("entry {n}: {why}")),
        }
    }
    Ok(page)
}

fn next_cursor(metadata: Option<&Value>) -> Option<String> {
    let metadata = metadata?;
    let cursor = metadata.get("nextCursor").or_else(|| metadata.get("next_cursor"))?;
    cursor.as_str().filter(|cursor| !cursor.is_empty()).map(str::to_owned)
}

fn read_entry(raw: &RawValue) -> Result<Entry, String> {
    let wrapped: Wrapped<'_> = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
    let server = wrapped.server.unwrap_or(raw);
    let named: Named = serde_json::from_str(server.get()).map_err(|error| error.to_string())?;
    let meta: Value = wrapped.meta.and_then(|meta| serde_json::from_str(meta.get()).ok()).unwrap_or(Value::Null);
    let stamps = registry_block(&meta);
    let text = |key: &str| stamps.get(key).and_then(Value::as_str).map(str::to_owned);
    let moment = |camel: &str, snake: &str| {
        let stamp = stamps.get(camel).or_else(|| stamps.get(snake))?.as_str()?;
        DateTime::parse_from_rfc3339(stamp).ok().map(|moment| moment.timestamp_millis())
    };
    Ok(Entry {
        name: named.name,
        version: named.version,
        server: server.get().to_owned(),
        meta: wrapped.meta.map(|meta| meta.get().to_owned()),
        status: text("status"),
        status_message: text("statusMessage"),
        published_ms: moment("publishedAt", "published_at"),
        updated_ms: moment("updatedAt", "updated_at"),
        is_latest: stamps.get("isLatest").or_else(|| stamps.get("is_latest")).and_then(Value::as_bool),
    })
}

/// The block that holds the registry's stamps: the official one, else one other that has all three members.
fn registry_block(meta: &Value) -> &Value {
    if let Some(official) = meta.get(OFFICIAL_META) {
        return official;
    }
    let has_all = |block: &&Value| ["status", "updatedAt", "isLatest"].iter().all(|key| block.get(key).is_some());
    let mut blocks = meta.as_object().into_iter().flat_map(serde_json::Map::values).filter(has_all);
    match (blocks.next(), blocks.next()) {
        (Some(only), None) => only,
        _ => &Value::Null,
    }
}

/// Which path of the API a registry answers on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiPath {
    /// The stable one since October 2025.
    V01,
    /// The one before.
    V0,
}

/// The address of a page.
///
/// # Errors
/// When the base is no absolute address.
pub fn page_url(
    base: &str,
    path: ApiPath,
    cursor: Option<&str>,
    since: Option<&str>,
) -> Result<String, url::ParseError> {
    let version = match path {
        ApiPath::V01 => "v0.1",
        ApiPath::V0 => "v0",
    };
    let mut url = Url::parse(&format!("{}/{version}/servers", base.trim_end_matches('/')))?;
    {
        let mut query = url.query_pairs_mut();
        query.append_pair("limit", &PAGE_SIZE.to_string());
        match since {
            Some(since) => query.append_pair("updated_since", since),
            None => query.append_pair("include_deleted", "true"),
        };
        // The cursor goes back byte for byte: form encoding keeps `+`, `/` and `:` apart from what they mean in a query.
        if let Some(cursor) = cursor {
            query.append_pair("cursor", cursor);
        }
    }
    Ok(url.into())
}

/// What came in place of a page, as far as the next step depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// 429, with the wait the answer asked for.
    Throttled(Option<Duration>),
    /// 5xx, a broken connection, a cut body, something that is no list answer.
    Failing,
    /// No answer in time.
    Timeout,
    /// 400 or 422.
    Refused,
    /// 401 or 403.
    KeyNeeded,
    /// 404 on the list.
    NotFound,
    /// Another status.
    Other(u16),
}

/// What was already tried for the page at hand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tries {
    /// Waits because of 429.
    pub throttled: u32,
    /// Failures.
    pub failing: u32,
    /// Timeouts.
    pub timeouts: u32,
}

/// What to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Ask the same page again after this long.
    Again(Duration),
    /// The cursor died: begin the walk over, once.
    StartOver,
    /// Ask the older path, once.
    OlderPath,
    /// End the walk as incomplete.
    GiveUp(&'static str),
}

/// The longest wait that is granted to a registry that asks for one.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// The wait after a 429 that names none.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// Decides after a page that did not come (registry-api §5). `jitter` lies between 0.5 and 1.5.
pub fn next_step(trouble: Trouble, tries: Tries, has_cursor: bool, jitter: f64) -> Next {
    let back_off = |failures: u32| Next::Again(Duration::from_secs(1 << failures.min(5)).mul_f64(jitter));
    match trouble {
        Trouble::Throttled(_) if tries.throttled > 5 => Next::GiveUp("still throttled after five waits"),
        Trouble::Throttled(wait) => Next::Again(wait.unwrap_or(DEFAULT_WAIT).min(LONGEST_WAIT)),
        Trouble::Failing if tries.failing >= 5 => Next::GiveUp("a page failed five times"),
        Trouble::Failing => back_off(tries.failing),
        Trouble::Timeout if tries.timeouts >= 3 => Next::GiveUp("a page timed out three times"),
        Trouble::Timeout => back_off(tries.timeouts),
        Trouble::Refused if has_cursor => Next::StartOver,
        Trouble::Refused => Next::GiveUp("the registry refuses the request"),
        Trouble::KeyNeeded => Next::GiveUp("the registry wants a key (key_env)"),
        Trouble::NotFound => Next::OlderPath,
        Trouble::Other(_) => Next::GiveUp("the registry gave an answer that is no list"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(body: &str) -> Page {
        read_page(body.as_bytes()).expect("it is a page")
    }

    #[test]
    fn wrapped_and_flat_entries_are_read_with_their_bytes() {
        let body = r#"{"servers": [
            {"server": {"name": "a/b",  "version": "1.0"}, "_meta": {"io.modelcontextprotocol.registry/official":
                {"status": "active", "publishedAt": "2025-10-01T00:00:00.123456789Z", "updatedAt": "2025-10-02T00:00:00Z", "isLatest": true}}},
            {"name": "c/d", "version": "2"},
            {"server": {"name": "e"}}, 7
        ], "metadata": {"nextCursor": "a/b:1.0", "count": 9}}"#;
        let page = page(body);
        assert_eq!(page.entries[0].server, r#"{"name": "a/b",  "version": "1.0"}"#);
        assert_eq!((page.entries[0].published_ms, page.entries[0].is_latest), (Some(1_759_276_800_123), Some(true)));
        assert_eq!((page.entries[1].name.as_str(), page.entries[1].is_latest), ("c/d", None));
        assert_eq!(page.unreadable.len(), 2, "{:?}", page.unreadable);
        assert_eq!(page.next.as_deref(), Some("a/b:1.0"));
    }

    #[test]
    fn an_absent_null_or_empty_cursor_ends_the_walk() {
        for metadata in ["{}", "{\"nextCursor\": null}", "{\"nextCursor\": \"\"}", "null"] {
            assert_eq!(page(&format!("{{\"servers\": [], \"metadata\": {metadata}}}")).next, None, "{metadata}");
        }
        assert_eq!(page("{\"servers\": [], \"metadata\": {\"next_cursor\": \"x\"}}").next.as_deref(), Some("x"));
        assert!(
            read_page(b"{\"error\": \"x\"}").is_err() && read_page(b"<html>").is_err() && read_page(b"[]").is_err()
        );
    }

    #[test]
    fn another_registrys_block_is_used_where_it_is_the_only_one() {
        let block = r#"{"status": "deprecated", "updatedAt": "2025-10-02T00:00:00Z", "isLatest": false}"#;
        let body = |blocks: &str| {
            format!(r#"{{"servers": [{{"server": {{"name": "a", "version": "1"}}, "_meta": {{{blocks}}}}}]}}"#)
        };
        assert_eq!(
            page(&body(&format!("\"com.x/y\": {block}, \"z\": {{}}"))).entries[0].status.as_deref(),
            Some("deprecated")
        );
        assert_eq!(page(&body(&format!("\"x\": {block}, \"y\": {block}"))).entries[0].status, None);
    }

    #[test]
    fn a_cursor_survives_its_way_back() {
        let url = page_url("https://r.example/", ApiPath::V01, Some("io.x/y:1.0.0+b &c"), None).expect("it is a base");
        assert_eq!(
            url,
            "https://r.example/v0.1/servers?limit=100&include_deleted=true&cursor=io.x%2Fy%3A1.0.0%2Bb+%26c"
        );
        let since =
            page_url("https://r.example", ApiPath::V0, None, Some("2025-01-01T00:00:00Z")).expect("it is a base");
        assert_eq!(since, "https://r.example/v0/servers?limit=100&updated_since=2025-01-01T00%3A00%3A00Z");
    }

    #[test]
    fn what_comes_next_follows_the_recipe() {
        let tries = |throttled, failing, timeouts| Tries { throttled, failing, timeouts };
        let seconds = |n| Next::Again(Duration::from_secs(n));
        let rows = [
            (Trouble::Throttled(Some(Duration::from_secs(7))), tries(1, 0, 0), seconds(7)),
            (Trouble::Throttled(None), tries(1, 0, 0), seconds(30)),
            (Trouble::Throttled(Some(Duration::from_secs(9999))), tries(1, 0, 0), seconds(900)),
            (Trouble::Throttled(None), tries(6, 0, 0), Next::GiveUp("still throttled after five waits")),
            (Trouble::Failing, tries(0, 1, 0), seconds(2)),
            (Trouble::Failing, tries(0, 4, 0), seconds(16)),
            (Trouble::Failing, tries(0, 5, 0), Next::GiveUp("a page failed five times")),
            (Trouble::Timeout, tries(0, 0, 3), Next::GiveUp("a page timed out three times")),
            (Trouble::Refused, tries(0, 0, 0), Next::StartOver),
            (Trouble::NotFound, tries(0, 0, 0), Next::OlderPath),
        ];
        for (trouble, tries, next) in rows {
            assert_eq!(next_step(trouble, tries, true, 1.0), next, "{trouble:?}");
        }
        assert!(matches!(next_step(Trouble::Refused, tries(0, 0, 0), false, 1.0), Next::GiveUp(_)));
    }
}
