-- How a surface was over time, as spans: a row is written when something changes, not when something is looked at.
-- Spans are half open, [from_s, to_s); `to_s` NULL is the present one.

-- Which document was served.
CREATE TABLE doc_span (
    surface_id       INTEGER NOT NULL REFERENCES surface (id),
    from_s           BIGINT  NOT NULL,
    to_s             BIGINT,
    document_id      INTEGER NOT NULL REFERENCES document (id),
    declared_version TEXT,                        -- what the document calls its own version
    etag             TEXT,
    last_modified    TEXT,
    PRIMARY KEY (surface_id, from_s)
);
CREATE INDEX doc_span_document ON doc_span (document_id);

-- Whether it could be reached.
CREATE TABLE reach_span (
    surface_id INTEGER NOT NULL REFERENCES surface (id),
    from_s     BIGINT  NOT NULL,
    to_s       BIGINT,
    state      TEXT    NOT NULL,                  -- as surface.reach
    reason     TEXT,                              -- of the first observation in it
    probes     INTEGER NOT NULL DEFAULT 0,        -- observations in it, written when it closes
    PRIMARY KEY (surface_id, from_s)
);

-- Every probe of the last days, packed. A record is 8 bytes, big-endian: minute of the day (2), outcome (1: 0 ok, 1 gated,
-- 2 absent, 3 unreachable, 4 throttled, 5 skipped, 6 crawler fault), HTTP status or 0 (2), milliseconds up to 65535 (2),
-- flags (1: bit 0 verification, bit 1 document changed, bit 2 in maintenance, bit 3 judged).
CREATE TABLE probe_day (
    surface_id INTEGER NOT NULL REFERENCES surface (id),
    day        INTEGER NOT NULL,
    probes     BYTEA   NOT NULL,
    PRIMARY KEY (surface_id, day)
);
CREATE INDEX probe_day_day ON probe_day (day);

-- The same by day, for ever. 31 records of 10 bytes, big-endian, the first for the 1st of the month; all zero is a day
-- without a probe. A record: answered (1, capped at 255), unreachable (1), neither (1), median ms (2), 95th percentile
-- ms (2), worst headline plus one (1: 1 blocked, 2 deviates, 3 sound, 4 not_detected, 5 not_evaluated), worst outcome plus
-- one (1, numbered as in probe_day), flags (1: bit 0 crawler fault that day, bit 1 document changed).
CREATE TABLE surface_month (
    surface_id INTEGER NOT NULL REFERENCES surface (id),
    month      INTEGER NOT NULL,                  -- months since January 1970
    days       BYTEA   NOT NULL,
    PRIMARY KEY (surface_id, month)
);

-- A recorded conversation, kept where it proves something: the newest of each surface, and those that opened or closed a finding.
CREATE TABLE probe_session (
    id         INTEGER PRIMARY KEY,
    surface_id INTEGER  NOT NULL REFERENCES surface (id),
    at_s       BIGINT   NOT NULL,
    outcome    TEXT     NOT NULL,                 -- ok, gated, absent, unreachable, throttled, skipped, crawler_fault
    reason     TEXT,
    is_latest  SMALLINT NOT NULL,                 -- 1: replaced by the next observation
    eval_id    INTEGER  REFERENCES eval (id),
    raw_len    BIGINT   NOT NULL,                 -- bytes of the JSON before compression
    body       BYTEA    NOT NULL                  -- zstd of the session as JSON, bodies that are documents left out by hash
);
CREATE INDEX probe_session_surface ON probe_session (surface_id, id);

-- A change of the target's software that we were told of or inferred.
CREATE TABLE deploy (
    id         INTEGER PRIMARY KEY,
    target_id  INTEGER  NOT NULL REFERENCES target (id),
    at_s       BIGINT   NOT NULL,
    told       SMALLINT NOT NULL DEFAULT 0,       -- 1: a marker from their pipeline
    dedupe_key TEXT,
    version    TEXT,
    weight     INTEGER  NOT NULL,                 -- of its strongest signal
    signals    TEXT     NOT NULL,                 -- JSON [{"kind","from","to","at_s"}, ...]
    outcome    TEXT,                              -- clean, improved, regressed, mixed, unreachable; NULL: not settled
    url        TEXT,
    UNIQUE (target_id, dedupe_key)
);
CREATE INDEX deploy_target ON deploy (target_id, at_s);

-- Several surfaces failing together for one reason.
CREATE TABLE incident (
    id        INTEGER PRIMARY KEY,
    opened_s  BIGINT  NOT NULL,
    closed_s  BIGINT,
    cause     TEXT    NOT NULL,                   -- host, prefix, certificate, ours
    shared    TEXT    NOT NULL,                   -- what they share: the host, the prefix, the issuer and expiry
    n_members INTEGER NOT NULL DEFAULT 0,
    note      TEXT
);
CREATE INDEX incident_open ON incident (opened_s) WHERE closed_s IS NULL;
CREATE TABLE incident_member (
    incident_id INTEGER NOT NULL REFERENCES incident (id),
    surface_id  INTEGER NOT NULL REFERENCES surface (id),
    joined_s    BIGINT  NOT NULL,
    left_s      BIGINT,
    PRIMARY KEY (incident_id, surface_id)
);
CREATE INDEX incident_member_surface ON incident_member (surface_id);

-- Pointers of a surface's document that differ at every fetch and so do not count as a change.
CREATE TABLE volatile_pointer (
    surface_id INTEGER NOT NULL REFERENCES surface (id),
    pointer    TEXT    NOT NULL,
    runs       INTEGER NOT NULL,                  -- fetches in a row in which only it differed
    marked_s   BIGINT,                            -- counted as volatile since; NULL: not yet
    PRIMARY KEY (surface_id, pointer)
);
