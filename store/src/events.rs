//! Events: facts with a growing number, written in the transaction that made them true and never changed.

use sqlx::Row;

use crate::Store;
use crate::dialect::{Table, Writing};
use crate::error::{Error, Result};
use crate::ids::{EventId, SurfaceId, TargetId};
use crate::words::EventKind;

/// One event as it is read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number; later events have greater ones.
    pub id: EventId,
    /// When it happened.
    pub at_s: i64,
    /// What happened.
    pub kind: EventKind,
    /// The target concerned, or one of them.
    pub target: Option<TargetId>,
    /// The surface concerned.
    pub surface: Option<SurfaceId>,
    /// The rule concerned, by name.
    pub rule: Option<String>,
    /// The finding, crawl, deploy, … concerned, by kind (see the table `event_kind`).
    pub subject: Option<i64>,
    /// Before, by kind.
    pub a: Option<i64>,
    /// After, by kind.
    pub b: Option<i64>,
    /// More, by kind.
    pub note: Option<String>,
}

/// An event about to be written.
#[derive(Debug, Clone)]
pub(crate) struct News {
    pub(crate) kind: EventKind,
    pub(crate) target: Option<i64>,
    pub(crate) surface: Option<i64>,
    pub(crate) rule: Option<i64>,
    pub(crate) subject: Option<i64>,
    pub(crate) a: Option<i64>,
    pub(crate) b: Option<i64>,
    pub(crate) note: Option<String>,
}

impl News {
    pub(crate) fn of(kind: EventKind) -> News {
        News { kind, target: None, surface: None, rule: None, subject: None, a: None, b: None, note: None }
    }
}

/// An event that waits for the end of its transaction.
#[derive(Debug)]
pub(crate) struct Waiting {
    id: i64,
    at_s: i64,
    news: News,
}

/// Appends one event. It gets its number now and its row at the end of the transaction, many rows in one statement.
pub(crate) async fn append(w: &mut Writing, at_s: i64, news: News) -> Result<()> {
    let id = w.next_id(Table::Event).await?;
    w.news.push(Waiting { id, at_s, news });
    Ok(())
}

/// Rows that one statement writes.
const ROWS: usize = 8;

/// Writes the events that wait.
pub(crate) async fn flush(w: &mut Writing) -> Result<()> {
    let waiting = std::mem::take(&mut w.news);
    let mut chunks = waiting.chunks_exact(ROWS);
    for chunk in &mut chunks {
        let mut insert = sqlx::query(
            "INSERT INTO event (id, at_s, kind, target_id, surface_id, rule_id, subject_id, a, b, note)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10),
                    ($11, $12, $13, $14, $15, $16, $17, $18, $19, $20),
                    ($21, $22, $23, $24, $25, $26, $27, $28, $29, $30),
                    ($31, $32, $33, $34, $35, $36, $37, $38, $39, $40),
                    ($41, $42, $43, $44, $45, $46, $47, $48, $49, $50),
                    ($51, $52, $53, $54, $55, $56, $57, $58, $59, $60),
                    ($61, $62, $63, $64, $65, $66, $67, $68, $69, $70),
                    ($71, $72, $73, $74, $75, $76, $77, $78, $79, $80)",
        );
        for event in chunk {
            insert = bind(insert, event);
        }
        insert.execute(w.on()).await?;
    }
    for event in chunks.remainder() {
        let insert = sqlx::query(
            "INSERT INTO event (id, at_s, kind, target_id, surface_id, rule_id, subject_id, a, b, note)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        );
        bind(insert, event).execute(w.on()).await?;
    }
    Ok(())
}

type Insert<'q> = sqlx::query::Query<'q, sqlx::Any, sqlx::any::AnyArguments>;

fn bind<'q>(insert: Insert<'q>, event: &Waiting) -> Insert<'q> {
    let news = &event.news;
    insert
        .bind(event.id)
        .bind(event.at_s)
        .bind(news.kind.number())
        .bind(news.target)
        .bind(news.surface)
        .bind(news.rule)
        .bind(news.subject)
        .bind(news.a)
        .bind(news.b)
        .bind(news.note.clone())
}

/// Which events are meant. Everything that is set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// One of these kinds; empty: all.
    pub kinds: Vec<EventKind>,
    /// Of this target.
    pub target: Option<TargetId>,
}

/// Events of every kind after one, in the order of their numbers.
pub(crate) const EVENTS: &str = "
SELECT event.id, event.at_s, event.kind, event.target_id, event.surface_id, rule.slug,
       event.subject_id, event.a, event.b, event.note
FROM event
LEFT JOIN rule ON rule.id = event.rule_id
WHERE event.id > $1
ORDER BY event.id
LIMIT $2";

/// The same of one kind.
pub(crate) const EVENTS_OF_KIND: &str = "
SELECT event.id, event.at_s, event.kind, event.target_id, event.surface_id, rule.slug,
       event.subject_id, event.a, event.b, event.note
FROM event
LEFT JOIN rule ON rule.id = event.rule_id
WHERE event.kind = $3 AND event.id > $1
ORDER BY event.id
LIMIT $2";

/// The same of one target, of one kind or of all.
pub(crate) const EVENTS_OF_TARGET: &str = "
SELECT event.id, event.at_s, event.kind, event.target_id, event.surface_id, rule.slug,
       event.subject_id, event.a, event.b, event.note
FROM event
LEFT JOIN rule ON rule.id = event.rule_id
WHERE event.target_id = $3 AND event.id > $1 AND ($4 IS NULL OR event.kind = $4)
ORDER BY event.id
LIMIT $2";

impl Store {
    /// The next events after one of which the filter holds, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn events_where(&self, filter: &EventFilter, after: EventId, limit: u32) -> Result<Vec<Event>> {
        let kinds: Vec<Option<i64>> = match filter.kinds.as_slice() {
            [] => vec![None],
            kinds => kinds.iter().map(|kind| Some(kind.number())).collect(),
        };
        let mut events = Vec::new();
        for kind in kinds {
            let statement = match (filter.target, kind) {
                (Some(_), _) => EVENTS_OF_TARGET,
                (None, Some(_)) => EVENTS_OF_KIND,
                (None, None) => EVENTS,
            };
            let mut query = sqlx::query(statement).bind(after.0).bind(i64::from(limit));
            if let Some(target) = filter.target {
                query = query.bind(target.0).bind(kind);
            } else if let Some(kind) = kind {
                query = query.bind(kind);
            }
            for row in query.fetch_all(&self.pools.reader).await? {
                events.push(event(&row)?);
            }
        }
        events.sort_by_key(|event| event.id);
        events.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(events)
    }

    /// The newest event; number 0 before there is any.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn newest_event(&self) -> Result<EventId> {
        let id: Option<i64> = sqlx::query_scalar("SELECT MAX(id) FROM event").fetch_one(&self.pools.reader).await?;
        Ok(EventId(id.unwrap_or(0)))
    }

    /// The next events after one, oldest first.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn events_after(&self, after: EventId, limit: u32) -> Result<Vec<Event>> {
        let rows = sqlx::query(
            "SELECT event.id, event.at_s, event.kind, event.target_id, event.surface_id, rule.slug,
                    event.subject_id, event.a, event.b, event.note
             FROM event
             LEFT JOIN rule ON rule.id = event.rule_id
             WHERE event.id > $1
             ORDER BY event.id
             LIMIT $2",
        )
        .bind(after.0)
        .bind(i64::from(limit))
        .fetch_all(&self.pools.reader)
        .await?;
        rows.iter().map(event).collect()
    }

    /// How far a reader of events has come; the beginning for one that never read.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn event_cursor(&self, reader: &str) -> Result<EventId> {
        let at: Option<i64> = sqlx::query_scalar("SELECT event_id FROM event_cursor WHERE reader = $1")
            .bind(reader)
            .fetch_optional(&self.pools.reader)
            .await?;
        Ok(EventId(at.unwrap_or(0)))
    }
}

fn event(row: &sqlx::any::AnyRow) -> Result<Event> {
    let kind: i64 = row.try_get(2)?;
    Ok(Event {
        id: EventId(row.try_get(0)?),
        at_s: row.try_get(1)?,
        kind: EventKind::numbered(kind).ok_or_else(|| Error::corrupt("event", format!("kind {kind}")))?,
        target: row.try_get::<Option<i64>, _>(3)?.map(TargetId),
        surface: row.try_get::<Option<i64>, _>(4)?.map(SurfaceId),
        rule: row.try_get(5)?,
        subject: row.try_get(6)?,
        a: row.try_get(7)?,
        b: row.try_get(8)?,
        note: row.try_get(9)?,
    })
}
