-- Where targets come from, and each pass over those places.

-- A registry, a list of domains, a file, the settings, the command line.
CREATE TABLE source (
    id           INTEGER PRIMARY KEY,
    kind         TEXT    NOT NULL,              -- mcp-registry, domains, file, settings, command-line
    name         TEXT    NOT NULL,              -- as the settings call it
    base         TEXT,                          -- base address or path; NULL where there is none
    added_s      BIGINT  NOT NULL,
    retired_s    BIGINT,                        -- no longer in the settings
    last_full_s  BIGINT,                        -- start of the last complete full walk
    last_pass_s  BIGINT,                        -- start of the last complete pass of any kind: what `updated_since` is made of
    last_tried_s BIGINT,                        -- start of the last pass, complete or not
    next_pass_s  BIGINT,                        -- when it is walked next
    problem      TEXT,                          -- why the last pass was not complete; NULL: it was
    UNIQUE (kind, name)
);

-- One pass of the crawler: a walk of a registry, a round over due surfaces, a single check. The page /crawls lists these.
CREATE TABLE crawl (
    id          INTEGER PRIMARY KEY,
    source_id   INTEGER REFERENCES source (id), -- NULL: a round over what was due, from all sources
    kind        TEXT    NOT NULL,               -- full-walk, incremental-walk, round, check
    state       TEXT    NOT NULL,               -- running, complete, incomplete, interrupted (the process ended before it did)
    holder      TEXT    NOT NULL,               -- the process that runs it, as in lease.holder
    started_s   BIGINT  NOT NULL,
    finished_s  BIGINT,
    ruleset_id  INTEGER REFERENCES ruleset (id),
    planned     INTEGER NOT NULL DEFAULT 0,     -- surfaces that were to be looked at; grows while a walk learns of more
    done        INTEGER NOT NULL DEFAULT 0,     -- surfaces looked at; coverage is done of planned
    ok          INTEGER NOT NULL DEFAULT 0,     -- of done, by reach outcome
    gated       INTEGER NOT NULL DEFAULT 0,
    absent      INTEGER NOT NULL DEFAULT 0,
    unreachable INTEGER NOT NULL DEFAULT 0,
    throttled   INTEGER NOT NULL DEFAULT 0,
    skipped     INTEGER NOT NULL DEFAULT 0,
    faults      INTEGER NOT NULL DEFAULT 0,     -- our own failures
    judged      INTEGER NOT NULL DEFAULT 0,     -- judgements made or remembered
    opened      INTEGER NOT NULL DEFAULT 0,     -- findings that opened, first looks included
    resolved    INTEGER NOT NULL DEFAULT 0,
    regressed   INTEGER NOT NULL DEFAULT 0,     -- of opened: worked before and was not our change
    pages       INTEGER NOT NULL DEFAULT 0,     -- pages of a listing read
    entries     INTEGER NOT NULL DEFAULT 0,     -- entries read, versions counted one by one
    names       INTEGER NOT NULL DEFAULT 0,     -- distinct names among them
    added       INTEGER NOT NULL DEFAULT 0,     -- targets seen for the first time
    gone        INTEGER NOT NULL DEFAULT 0,     -- listings marked gone by this pass
    held_back   INTEGER NOT NULL DEFAULT 0,     -- listings that would be gone, but were too many at once to believe
    note        TEXT                            -- what a person should know, in words; NULL: nothing
);
CREATE INDEX crawl_source ON crawl (source_id, id);
CREATE INDEX crawl_running ON crawl (state) WHERE state = 'running';

-- What went wrong in a crawl or was wrong with a listing, at most a few hundred a crawl.
CREATE TABLE crawl_fault (
    crawl_id INTEGER NOT NULL REFERENCES crawl (id),
    n        INTEGER NOT NULL,                  -- counted from 1
    at_s     BIGINT  NOT NULL,
    code     TEXT    NOT NULL,                  -- kebab-case: cursor-repeated, walk-too-long, updated-since-ignored, ...
    subject  TEXT,                              -- an address, a name
    note     TEXT,
    PRIMARY KEY (crawl_id, n)
);

-- A registry read page by page. The cursor moves in the same transaction as the page it came with, so a restart goes on there.
CREATE TABLE walk (
    id         INTEGER PRIMARY KEY,
    source_id  INTEGER  NOT NULL REFERENCES source (id),
    crawl_id   INTEGER  NOT NULL REFERENCES crawl (id),
    complete   SMALLINT NOT NULL DEFAULT 0,     -- 1: it ended by itself; only then may absence count
    is_full    SMALLINT NOT NULL,               -- 1: everything; 0: what moved since `since_s`
    since_s    BIGINT,                          -- lower end of an incremental walk
    state      TEXT     NOT NULL,               -- running, complete, incomplete, interrupted
    started_s  BIGINT   NOT NULL,               -- by the registry's own clock where it told us
    page_s     BIGINT   NOT NULL,               -- when the last page was stored
    finished_s BIGINT,
    cursor     TEXT,                            -- for the next page; NULL: at the start, or at the end
    pages      INTEGER  NOT NULL DEFAULT 0,
    entries    INTEGER  NOT NULL DEFAULT 0,
    problem    TEXT                             -- why it is not complete
);
CREATE INDEX walk_source ON walk (source_id, id);

-- Who is working on what until when. A lease that has run out is free: its holder died.
CREATE TABLE lease (
    kind       TEXT    NOT NULL,                -- surface, source, job
    subject_id INTEGER NOT NULL,                -- the surface or source; for jobs a fixed number
    holder     TEXT    NOT NULL,                -- which process
    taken_s    BIGINT  NOT NULL,
    until_s    BIGINT  NOT NULL,
    PRIMARY KEY (kind, subject_id)
);
CREATE INDEX lease_until ON lease (until_s);

-- Small settled facts of this database: when the demo was made, which day the rollups have reached, ...
CREATE TABLE kv (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
