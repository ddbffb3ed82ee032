//! `/badges/…`: how one target or a group stands, small enough for a README. Drawn here, with its words measured.

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use plumbline_store::query::{self, Field};
use plumbline_store::views::TargetDetail;
use plumbline_store::words::{Headline, ReachState};
use serde::{Deserialize, Serialize};

use super::filled;
use crate::WebState;
use crate::error::Error;
use crate::page::Visit;
use crate::text;
use crate::words;

/// What the badge shows, and how.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    metric: Option<String>,
    style: Option<String>,
}

/// A badge: two fields of words.
#[derive(Debug, Clone, PartialEq, Template)]
#[template(path = "badge.svg", escape = "html")]
struct Badge {
    label: String,
    value: String,
    color: &'static str,
    title: String,
    is_flat: bool,
}

/// What shields.io reads from an endpoint.
#[derive(Serialize)]
struct Shield {
    #[serde(rename = "schemaVersion")]
    schema_version: i64,
    label: String,
    message: String,
    color: &'static str,
}

const GREEN: &str = "#007a52";
const AMBER: &str = "#8a5c00";
const RED: &str = "#84150d";
const GREY: &str = "#545a66";

/// `GET /badges/target/{id}.svg` and `.json`
pub async fn target(
    visit: Visit,
    State(state): State<WebState>,
    Path(file): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    let (name, is_json) = named(&file)?;
    let unknown = || Error::NotFound { what: "target", asked: name.to_owned() };
    let id: i64 = name.parse().map_err(|_| unknown())?;
    let target = state.store.target(id).await?.ok_or_else(unknown)?;
    // How often it is looked at is known from the next look on, where an older release made the last.
    let is_stale = match target.stale_from_s {
        Some(from) => visit.now > from,
        None => target.last_attempt_s.is_none(),
    };
    let uptime = uptime(&state, id, visit.now).await?;
    let (value, color) = of_target(&target, filled(asked.metric.as_deref()), uptime)?;
    let as_of = target
        .last_attempt_s
        .map_or_else(|| "not looked at yet".to_owned(), |at| format!("as of {}", text::moment(at)));
    let stale = if is_stale { "stale, " } else { "" };
    let badge = Badge {
        label: label(&visit),
        title: format!("{}: {value}, {stale}{as_of}", text::visible(&target.name, 60)),
        value: if is_stale { format!("{value}, stale") } else { value },
        color: if is_stale { GREY } else { color },
        is_flat: filled(asked.style.as_deref()) != Some("plain"),
    };
    answer(&badge, is_json)
}

/// `GET /badges/owner/{o}.svg`
pub async fn owner(
    visit: Visit,
    State(state): State<WebState>,
    Path(file): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    group(visit, state, Field::Owner, &file, &asked).await
}

/// `GET /badges/host/{h}.svg`
pub async fn host(
    visit: Visit,
    State(state): State<WebState>,
    Path(file): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    group(visit, state, Field::Host, &file, &asked).await
}

/// `GET /badges/tag/{k=v}.svg`
pub async fn tag(
    visit: Visit,
    State(state): State<WebState>,
    Path(file): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    group(visit, state, Field::Tag, &file, &asked).await
}

fn named(file: &str) -> Result<(&str, bool), Error> {
    let svg = file.strip_suffix(".svg").map(|name| (name, false));
    svg.or_else(|| file.strip_suffix(".json").map(|name| (name, true)))
        .ok_or_else(|| Error::NotFound { what: "badge", asked: file.to_owned() })
}

fn label(visit: &Visit) -> String {
    text::visible(&visit.frame.instance, 30).to_lowercase()
}

/// Answers of answers and failures over ninety days.
async fn uptime(state: &WebState, target: i64, now: i64) -> Result<(i64, i64), Error> {
    let days = state.store.target_days(target, now / 86_400).await?;
    let all = days.iter().flat_map(|(_, days)| days).flatten();
    Ok(all.fold((0, 0), |(up, all), day| {
        (up + i64::from(day.answered), all + i64::from(day.answered) + i64::from(day.unreachable))
    }))
}

fn of_target(target: &TargetDetail, metric: Option<&str>, uptime: (i64, i64)) -> Result<(String, &'static str), Error> {
    Ok(match metric {
        None | Some("headline") => {
            let down = if target.reach == ReachState::Down { ", down" } else { "" };
            (format!("{}{down}", words::headline(target.headline).to_lowercase()), color(target.headline))
        }
        Some("errors") => match (target.headline, target.n_error) {
            (Headline::NotEvaluated | Headline::NotDetected, _) => ("not evaluated".to_owned(), GREY),
            (_, 0) => ("no errors".to_owned(), GREEN),
            (_, n) => (text::counted(n, "error", "errors"), color(target.headline)),
        },
        Some("clients") => match (target.headline, target.n_blocking) {
            (Headline::NotEvaluated | Headline::NotDetected, _) => ("not evaluated".to_owned(), GREY),
            (_, 0) => ("no client refuses".to_owned(), GREEN),
            _ => ("refused by clients".to_owned(), RED),
        },
        Some("uptime90") => match uptime {
            (_, 0) => ("not looked at".to_owned(), GREY),
            (up, all) => {
                (format!("{} up, 90 days", text::share(up, all)), if up * 100 >= all * 99 { GREEN } else { AMBER })
            }
        },
        Some("version") => {
            let version =
                target.declared_version.as_deref().map_or_else(|| "no version".to_owned(), |v| text::visible(v, 24));
            (version, GREY)
        }
        Some(other) => {
            let reason =
                format!("is none of headline, clients, errors, uptime90, version: “{}”", text::visible(other, 40));
            return Err(Error::BadQuery { field: "metric", reason });
        }
    })
}

fn color(headline: Headline) -> &'static str {
    match headline {
        Headline::Sound => GREEN,
        Headline::Deviates => AMBER,
        Headline::Blocked => RED,
        Headline::NotDetected | Headline::NotEvaluated => GREY,
    }
}

async fn group(visit: Visit, state: WebState, field: Field, file: &str, asked: &Asked) -> Result<Response, Error> {
    let (slug, is_json) = named(file)?;
    let query = query::Query::default().with(field, Some(slug));
    let counts = state.store.target_counts(&query.filter(visit.now)?).await?;
    let of =
        |headline| counts.iter().filter(|count| count.headline == headline).map(|count| count.targets).sum::<i64>();
    let (sound, deviates, blocked) = (of(Headline::Sound), of(Headline::Deviates), of(Headline::Blocked));
    let judged = sound + deviates + blocked;
    if counts.is_empty() {
        return Err(Error::NotFound { what: field.name(), asked: slug.to_owned() });
    }
    let worst = match (judged, blocked, deviates) {
        (0, ..) => Headline::NotEvaluated,
        (_, 1.., _) => Headline::Blocked,
        (_, 0, 1..) => Headline::Deviates,
        _ => Headline::Sound,
    };
    let value = if judged == 0 { "not evaluated".to_owned() } else { format!("{sound} of {judged} sound") };
    let badge = Badge {
        label: label(&visit),
        title: format!("{}: {value}", text::visible(slug, 60)),
        value,
        color: color(worst),
        is_flat: filled(asked.style.as_deref()) != Some("plain"),
    };
    answer(&badge, is_json)
}

fn answer(badge: &Badge, is_json: bool) -> Result<Response, Error> {
    let (kind, body) = if is_json {
        let shield =
            Shield { schema_version: 1, label: badge.label.clone(), message: badge.value.clone(), color: badge.color };
        ("application/json", serde_json::to_string(&shield)?)
    } else {
        ("image/svg+xml", badge.render()?)
    };
    let tag = format!("\"{:016x}\"", crate::assets::fingerprint(&body));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300, stale-while-revalidate=3600")),
        (header::ETAG, HeaderValue::from_str(&tag).expect("a tag is hex")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'")),
        // A badge is made to be shown elsewhere.
        (header::HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("cross-origin")),
    ];
    Ok((StatusCode::OK, headers, body).into_response())
}

impl Badge {
    fn label_width(&self) -> f64 {
        width(&self.label) + 12.0
    }

    fn value_width(&self) -> f64 {
        width(&self.value) + 12.0
    }

    fn whole(&self) -> f64 {
        self.label_width() + self.value_width()
    }

    fn label_text(&self) -> f64 {
        width(&self.label)
    }

    fn value_text(&self) -> f64 {
        width(&self.value)
    }
}

/// About how wide words are in the sans serif faces of browsers at 11 px; `textLength` makes it exact.
fn width(words: &str) -> f64 {
    let of = |letter: char| match letter {
        'i' | 'j' | 'l' | '.' | ',' | ':' | '\'' | '|' | '!' => 3.4,
        'f' | 't' | 'r' | ' ' | '-' | '(' | ')' => 4.4,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 9.4,
        'A'..='Z' => 7.4,
        letter if letter.is_ascii() => 6.4,
        _ => 11.0,
    };
    words.chars().map(of).sum::<f64>().ceil()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_badge_escapes_and_measures_its_words() {
        let badge = Badge {
            label: "a<b".to_owned(),
            value: "sound".to_owned(),
            color: GREEN,
            title: "x\"y".to_owned(),
            is_flat: true,
        };
        let svg = badge.render().unwrap();
        assert!(svg.contains("a&#60;b") && svg.contains("x&#34;y") && !svg.contains("a<b"), "{svg}");
        assert!(width("sound") > 20.0 && width("sound") < 40.0);
    }
}
