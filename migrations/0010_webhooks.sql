-- Deliveries: written with the alert that asks for them, sent later, each receiver at its own pace.

-- A receiver.
CREATE TABLE wh_endpoint (
    id              INTEGER PRIMARY KEY,
    title           TEXT     NOT NULL,
    url             TEXT     NOT NULL,
    format          TEXT     NOT NULL,                -- generic, slack, teams, discord, ...
    mode            TEXT     NOT NULL,                -- events or groups
    types           TEXT     NOT NULL,                -- JSON list of event words, with prefix wildcards
    matcher         TEXT     NOT NULL DEFAULT '',
    origin          TEXT     NOT NULL,                -- file or ui
    state           TEXT     NOT NULL,                -- active, failing, disabled
    state_note      TEXT,
    per_minute      INTEGER  NOT NULL,
    schema_date     TEXT     NOT NULL,                -- payload version it is pinned to
    failures        INTEGER  NOT NULL DEFAULT 0,      -- in a row
    first_failure_s BIGINT,
    last_success_s  BIGINT,
    created_s       BIGINT   NOT NULL
);

-- Its secrets, current and previous; the key is encrypted by the key of the installation.
CREATE TABLE wh_secret (
    endpoint_id INTEGER NOT NULL REFERENCES wh_endpoint (id),
    role        TEXT    NOT NULL,                     -- current, previous
    scheme      TEXT    NOT NULL,                     -- v1, v1a
    key_enc     BYTEA   NOT NULL,
    created_s   BIGINT  NOT NULL,
    expires_s   BIGINT,
    last_used_s BIGINT,                               -- last time it signed a delivery that was accepted
    PRIMARY KEY (endpoint_id, role, scheme)
);

-- A message, once, however many receive it.
CREATE TABLE wh_message (
    id       TEXT    PRIMARY KEY,                     -- msg_ and a ULID
    type     TEXT    NOT NULL,                        -- event word
    event_id INTEGER,
    group_id INTEGER,
    at_s     BIGINT  NOT NULL,
    body     BYTEA   NOT NULL                         -- as it will be sent
);
CREATE INDEX wh_message_at ON wh_message (at_s);

-- One message for one receiver.
CREATE TABLE wh_delivery (
    endpoint_id INTEGER  NOT NULL REFERENCES wh_endpoint (id),
    message_id  TEXT     NOT NULL REFERENCES wh_message (id),
    state       TEXT     NOT NULL,                    -- pending, delivered, dead, cancelled
    attempts    INTEGER  NOT NULL DEFAULT 0,
    next_s      BIGINT,                               -- when it is tried next
    last_code   INTEGER,
    last_error  TEXT,
    replay      SMALLINT NOT NULL DEFAULT 0,
    done_s      BIGINT,
    PRIMARY KEY (endpoint_id, message_id)
);
CREATE INDEX wh_delivery_due ON wh_delivery (next_s) WHERE state = 'pending';

-- Each try, for the delivery log.
CREATE TABLE wh_attempt (
    endpoint_id INTEGER NOT NULL,
    message_id  TEXT    NOT NULL,
    n           INTEGER NOT NULL,
    at_ms       BIGINT  NOT NULL,
    took_ms     INTEGER NOT NULL,
    status      INTEGER,                              -- NULL: no answer
    error       TEXT,
    request     TEXT    NOT NULL,                     -- JSON of the headers as sent
    response    TEXT,                                 -- JSON of the headers and the start of the body
    PRIMARY KEY (endpoint_id, message_id, n)
);
CREATE INDEX wh_attempt_at ON wh_attempt (at_ms);
