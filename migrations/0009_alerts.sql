-- Who is to be told what, and what must not be told: routes, alerts, groups, and the four ways of keeping quiet.

-- Which events go where, and how patiently.
CREATE TABLE route (
    id                   INTEGER PRIMARY KEY,
    slug                 TEXT     NOT NULL UNIQUE,
    title                TEXT     NOT NULL,
    origin               TEXT     NOT NULL,           -- file (read-only on the pages) or ui
    matcher              TEXT     NOT NULL,           -- in the language of the target list, with event words
    min_severity         TEXT     NOT NULL DEFAULT 'warning',
    include_baseline     SMALLINT NOT NULL DEFAULT 0,
    include_rule_changes SMALLINT NOT NULL DEFAULT 0,
    wait_s               INTEGER  NOT NULL DEFAULT 60,
    interval_s           INTEGER  NOT NULL DEFAULT 900,
    repeat_s             INTEGER  NOT NULL DEFAULT 86400,
    quiet_hours          TEXT,                        -- JSON {"zone","from","to"}; NULL: none
    enabled              SMALLINT NOT NULL DEFAULT 1,
    created_s            BIGINT   NOT NULL
);

-- Where a route leads.
CREATE TABLE route_endpoint (
    route_id    INTEGER NOT NULL REFERENCES route (id),
    endpoint_id INTEGER NOT NULL,
    PRIMARY KEY (route_id, endpoint_id)
);

-- Alerts that are told together.
CREATE TABLE alert_group (
    id        INTEGER PRIMARY KEY,
    route_id  INTEGER NOT NULL REFERENCES route (id),
    by_what   TEXT    NOT NULL,                       -- incident, deploy, ruleset, rule, target
    key       TEXT    NOT NULL,                       -- of what they share
    opened_s  BIGINT  NOT NULL,
    ended_s   BIGINT,
    due_s     BIGINT,                                 -- next time it may be told; NULL: nothing to tell
    told_s    BIGINT,
    revision  INTEGER NOT NULL DEFAULT 1,
    severity  TEXT    NOT NULL,
    firing    INTEGER NOT NULL DEFAULT 0,
    resolved  INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX alert_group_open ON alert_group (route_id, by_what, key) WHERE ended_s IS NULL;
CREATE INDEX alert_group_due ON alert_group (due_s) WHERE due_s IS NOT NULL;

-- One thing one route is concerned about. The same key never has two open alerts on a route.
CREATE TABLE alert (
    id           INTEGER PRIMARY KEY,
    route_id     INTEGER NOT NULL REFERENCES route (id),
    group_id     INTEGER REFERENCES alert_group (id),
    key          TEXT    NOT NULL,                    -- finding:, reach:, incident:, rule:, crawl:, webhook: with a number
    state        TEXT    NOT NULL,                    -- firing, held, inhibited, silenced, acknowledged, resolved
    severity     TEXT    NOT NULL,
    target_id    INTEGER,
    opened_event INTEGER NOT NULL,
    last_event   INTEGER NOT NULL,
    opened_s     BIGINT  NOT NULL,
    notified_s   BIGINT,                              -- first told; NULL: never, so its end is not told either
    ended_s      BIGINT,
    held_by      TEXT,                                -- why it was not told: brake, maintenance:, silence:, inhibited:
    ack_by       TEXT,
    ack_note     TEXT,
    ack_s        BIGINT,
    ack_until_s  BIGINT
);
CREATE UNIQUE INDEX alert_open ON alert (route_id, key) WHERE ended_s IS NULL;
CREATE INDEX alert_group_id ON alert (group_id);

-- For a while nobody wants to hear of what matches.
CREATE TABLE silence (
    id         INTEGER PRIMARY KEY,
    matcher    TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    author     TEXT    NOT NULL,
    origin     TEXT    NOT NULL,
    created_s  BIGINT  NOT NULL,
    starts_s   BIGINT  NOT NULL,
    ends_s     BIGINT  NOT NULL,
    calm_s     INTEGER,                               -- ends early after so many seconds without a match
    matched_s  BIGINT,                                -- last time it matched
    ended_s    BIGINT
);
CREATE INDEX silence_ends ON silence (ends_s) WHERE ended_s IS NULL;

-- An accepted deviation: shown on the finding, counted apart, never hidden.
CREATE TABLE waiver (
    id        INTEGER PRIMARY KEY,
    rule      TEXT    NOT NULL,                       -- a rule's slug, or a family with /*
    matcher   TEXT    NOT NULL,
    reason    TEXT    NOT NULL,
    author    TEXT    NOT NULL,
    origin    TEXT    NOT NULL,
    created_s BIGINT  NOT NULL,
    ends_s    BIGINT  NOT NULL,
    ended_s   BIGINT
);

-- Planned work on their side: probes go on, alerts are held, uptime leaves the time out.
CREATE TABLE maintenance (
    id         INTEGER PRIMARY KEY,
    title      TEXT    NOT NULL,
    matcher    TEXT    NOT NULL,
    author     TEXT    NOT NULL,
    origin     TEXT    NOT NULL,
    zone       TEXT    NOT NULL DEFAULT 'UTC',        -- the window's own zone
    starts_s   BIGINT,                                -- once; NULL when recurring
    cron       TEXT,                                  -- recurring; NULL when once
    duration_s INTEGER NOT NULL,
    created_s  BIGINT  NOT NULL,
    ended_s    BIGINT
);

-- Notes and hands on findings during triage.
CREATE TABLE finding_note (
    id         INTEGER PRIMARY KEY,
    finding_id INTEGER NOT NULL REFERENCES finding (id),
    at_s       BIGINT  NOT NULL,
    author     TEXT    NOT NULL,
    kind       TEXT    NOT NULL,                      -- note, assigned, acknowledged, triaged
    body       TEXT    NOT NULL,
    until_s    BIGINT
);
CREATE INDEX finding_note_finding ON finding_note (finding_id, id);
