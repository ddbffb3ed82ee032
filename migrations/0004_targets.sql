-- What is watched. A target is what a person cares about, a surface is one fetchable face of it, a listing is what a registry says.

-- Whoever stands behind targets: a registry namespace or an organisation named in the settings.
CREATE TABLE owner (
    id      INTEGER PRIMARY KEY,
    slug    TEXT    NOT NULL UNIQUE,            -- io.github.somebody, example
    name    TEXT    NOT NULL,                   -- as shown
    added_s BIGINT  NOT NULL
);

-- A host as politeness sees it.
CREATE TABLE host (
    id           INTEGER PRIMARY KEY,
    name         TEXT    NOT NULL UNIQUE,       -- host name, with :port where it is not the usual one
    domain       TEXT    NOT NULL,              -- its registrable domain (the name itself where there is none)
    added_s      BIGINT  NOT NULL,
    pace_ms      INTEGER,                       -- gap between requests; NULL: the default
    open_until_s BIGINT,                        -- circuit: nothing is asked before
    note         TEXT
);
CREATE INDEX host_domain ON host (domain);

-- One row per watched thing. Everything from `headline` on is derived from its surfaces and kept here for lists.
CREATE TABLE target (
    id               INTEGER PRIMARY KEY,
    kind             TEXT     NOT NULL,           -- mcp-server, a2a-agent, openapi-service, oauth-service, other
    key              TEXT     NOT NULL,           -- registry name, or host and path of the card, or the address
    name             TEXT     NOT NULL,           -- as shown; the key where nothing better is known
    summary          TEXT,                        -- one line of its own description, shortened
    url              TEXT,                        -- its main address; NULL where it has none of its own
    source_id        INTEGER  NOT NULL REFERENCES source (id),  -- where it was first seen
    owner_id         INTEGER  REFERENCES owner (id),
    host_id          INTEGER  REFERENCES host (id),
    is_own           SMALLINT NOT NULL DEFAULT 0, -- 1: the operator says it is theirs
    declared_version TEXT,                        -- what it calls its own version
    first_seen_s     BIGINT   NOT NULL,
    last_seen_s      BIGINT   NOT NULL,           -- in a source
    retired_s        BIGINT,                      -- left all its sources; NULL: watched
    retire_reason    TEXT,                        -- source, deleted, absent
    interval_s       INTEGER,                     -- between checks; NULL: the default of its kind
    paused           SMALLINT NOT NULL DEFAULT 0,
    headline         TEXT     NOT NULL DEFAULT 'not_evaluated',  -- blocked, deviates, sound, not_detected, not_evaluated
    headline_rank    SMALLINT NOT NULL DEFAULT 4, -- the same as a number for ordering: 0 blocked, 1 deviates, 2 sound, 3 not_detected, 4 not_evaluated
    headline_since_s BIGINT,                      -- NULL: never judged
    reach            TEXT     NOT NULL DEFAULT 'unknown',  -- unknown, up, gated, suspect, down, absent, throttled, flapping, retired
    reach_since_s    BIGINT,
    profile          TEXT,                        -- detected revision of its main surface
    known            TEXT,                        -- declared, inferred, assumed, undetermined
    n_surfaces       INTEGER  NOT NULL DEFAULT 0,
    n_blocking       INTEGER  NOT NULL DEFAULT 0, -- open findings that break clients, of all surfaces; so are the next four
    n_error          INTEGER  NOT NULL DEFAULT 0,
    n_warn           INTEGER  NOT NULL DEFAULT 0,
    n_info           INTEGER  NOT NULL DEFAULT 0,
    n_security       INTEGER  NOT NULL DEFAULT 0,
    n_waived         INTEGER  NOT NULL DEFAULT 0,
    last_ok_s        BIGINT,                      -- last answer of any surface
    last_attempt_s   BIGINT,
    next_due_s       BIGINT,                      -- of the surface that is due first
    changed_s        BIGINT   NOT NULL,           -- last change of headline, counts or document
    UNIQUE (kind, key)
);
CREATE INDEX target_headline ON target (headline_rank, changed_s DESC, id);
CREATE INDEX target_changed ON target (changed_s DESC, id);
CREATE INDEX target_kind ON target (kind, headline_rank, reach);
CREATE INDEX target_host ON target (host_id);
CREATE INDEX target_owner ON target (owner_id);
CREATE INDEX target_name ON target (name, id);

-- The sources that list a target at present, or did.
CREATE TABLE target_source (
    target_id    INTEGER NOT NULL REFERENCES target (id),
    source_id    INTEGER NOT NULL REFERENCES source (id),
    first_seen_s BIGINT  NOT NULL,
    last_seen_s  BIGINT  NOT NULL,
    gone_s       BIGINT,                          -- left this source; NULL: still there
    PRIMARY KEY (target_id, source_id)
);
CREATE INDEX target_source_source ON target_source (source_id, target_id);

-- One fetchable face. One address named by several targets is one surface, judged once; findings live here.
CREATE TABLE surface (
    id               INTEGER PRIMARY KEY,
    kind             TEXT     NOT NULL,           -- a2a-card, server-json, mcp-endpoint, a2a-interface, mcp-server-card, oauth-protected-resource, oauth-authorization-server, openapi, jwks
    url              TEXT     NOT NULL,           -- where it is fetched; for an entry of a list the address it would have alone
    host_id          INTEGER  REFERENCES host (id),
    listing_id       INTEGER,                     -- the listing whose document this is; NULL: it is fetched by itself
    added_s          BIGINT   NOT NULL,
    retired_s        BIGINT,                      -- no target names it any more
    document_id      INTEGER  REFERENCES document (id),   -- what it served last
    eval_id          INTEGER  REFERENCES eval (id),       -- the last judgement that could be made
    judged           BYTEA,                       -- bit n set: rule n passed or fired when it was last looked at here
    profile          TEXT,
    known            TEXT,
    headline         TEXT     NOT NULL DEFAULT 'not_evaluated',
    headline_since_s BIGINT,
    reach            TEXT     NOT NULL DEFAULT 'unknown',
    reach_reason     TEXT,                        -- connect_timeout, tls_expired, auth, payment, ...
    reach_since_s    BIGINT,
    reach_probes     INTEGER  NOT NULL DEFAULT 0, -- observations since then
    streak           INTEGER  NOT NULL DEFAULT 0, -- equal outcomes in a row
    streak_outcome   TEXT,                        -- ok, gated, absent, unreachable, throttled
    streak_since_s   BIGINT,                      -- first of them
    n_blocking       INTEGER  NOT NULL DEFAULT 0, -- open findings; so are the next four
    n_error          INTEGER  NOT NULL DEFAULT 0,
    n_warn           INTEGER  NOT NULL DEFAULT 0,
    n_info           INTEGER  NOT NULL DEFAULT 0,
    n_security       INTEGER  NOT NULL DEFAULT 0,
    evaluations      INTEGER  NOT NULL DEFAULT 0, -- judgements made, unchanged ones included
    first_evaluated_s BIGINT,                     -- first complete judgement of something that could be told what it is
    last_evaluated_s BIGINT,                      -- moves even when nothing else does
    last_ok_s        BIGINT,
    last_attempt_s   BIGINT,
    last_status      INTEGER,                     -- of the last answer
    last_took_ms     INTEGER,
    etag             TEXT,                        -- validators of the last 200, for conditional requests
    last_modified    TEXT,
    interval_s       INTEGER,
    next_due_s       BIGINT,                      -- NULL: not scheduled
    UNIQUE (kind, url)
);
CREATE INDEX surface_due ON surface (next_due_s) WHERE next_due_s IS NOT NULL;
CREATE INDEX surface_document ON surface (document_id);
CREATE INDEX surface_host ON surface (host_id);
CREATE INDEX surface_listing ON surface (listing_id) WHERE listing_id IS NOT NULL;

-- Which target shows which surface, and as what.
CREATE TABLE target_surface (
    target_id  INTEGER NOT NULL REFERENCES target (id),
    surface_id INTEGER NOT NULL REFERENCES surface (id),
    role       TEXT    NOT NULL,                  -- main (its own document), endpoint, interface, metadata
    added_s    BIGINT  NOT NULL,
    removed_s  BIGINT,                            -- no longer named; NULL: current
    PRIMARY KEY (target_id, surface_id, role)
);
CREATE INDEX target_surface_surface ON target_surface (surface_id, target_id);

-- One version of one name in one registry. The name is the target; nothing is ever dropped.
CREATE TABLE listing (
    id             INTEGER PRIMARY KEY,
    source_id      INTEGER  NOT NULL REFERENCES source (id),
    target_id      INTEGER  NOT NULL REFERENCES target (id),
    name           TEXT     NOT NULL,             -- compared byte for byte
    version        TEXT     NOT NULL,             -- any text
    status         TEXT,                          -- active, deprecated, deleted, or whatever was said; NULL: nothing
    status_message TEXT,
    published_ms   BIGINT,                        -- the registry's own stamps
    updated_ms     BIGINT,
    is_latest      SMALLINT NOT NULL DEFAULT 0,   -- what the registry says
    is_current     SMALLINT NOT NULL DEFAULT 0,   -- the version whose document is the target's surface
    document_id    INTEGER  NOT NULL REFERENCES document (id),
    meta           TEXT,                          -- the `_meta` beside it, as received
    first_seen_s   BIGINT   NOT NULL,
    last_seen_s    BIGINT   NOT NULL,
    changed_s      BIGINT   NOT NULL,             -- last time document, status or flag moved
    walk_id        INTEGER  NOT NULL REFERENCES walk (id),  -- the last walk that saw it
    missed         INTEGER  NOT NULL DEFAULT 0,   -- complete full walks in a row without it
    gone_s         BIGINT,                        -- absent from two complete full walks in a row; NULL: listed
    UNIQUE (source_id, name, version)
);
CREATE INDEX listing_target ON listing (target_id, source_id);
CREATE INDEX listing_document ON listing (document_id);

-- Words a person can search targets by: lower case, from key, name, summary, owner and host; looked up by prefix.
CREATE TABLE target_token (
    token     TEXT    NOT NULL,
    target_id INTEGER NOT NULL REFERENCES target (id),
    PRIMARY KEY (token, target_id)
);
CREATE INDEX target_token_target ON target_token (target_id);

-- Tags of the settings, such as tier=1.
CREATE TABLE tag (
    target_id INTEGER NOT NULL REFERENCES target (id),
    key       TEXT    NOT NULL,
    value     TEXT    NOT NULL,                   -- empty where the tag is only a word
    PRIMARY KEY (target_id, key, value)
);
CREATE INDEX tag_key ON tag (key, value);

-- A named group of targets that trends are kept for.
CREATE TABLE cohort (
    id          INTEGER PRIMARY KEY,
    slug        TEXT    NOT NULL UNIQUE,
    title       TEXT    NOT NULL,
    query       TEXT    NOT NULL,                 -- in the language of the target list; empty: everything
    refreshed_s BIGINT
);
INSERT INTO cohort (id, slug, title, query) VALUES
    (1, 'all', 'All targets', ''),
    (2, 'mcp-server', 'MCP servers', 'kind:mcp-server'),
    (3, 'a2a-agent', 'A2A agents', 'kind:a2a-agent'),
    (4, 'openapi-service', 'OpenAPI services', 'kind:openapi-service'),
    (5, 'oauth-service', 'OAuth metadata', 'kind:oauth-service'),
    (6, 'other', 'Other addresses', 'kind:other');

-- Members of cohorts that are not simply a kind.
CREATE TABLE cohort_member (
    cohort_id INTEGER NOT NULL REFERENCES cohort (id),
    target_id INTEGER NOT NULL REFERENCES target (id),
    PRIMARY KEY (cohort_id, target_id)
);
CREATE INDEX cohort_member_target ON cohort_member (target_id);
