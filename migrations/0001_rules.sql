-- The catalogue as it was at each release, so that a stored result can always say which rule, in which version, it is about.
--
-- Conventions of every table here. One dialect for SQLite and PostgreSQL: flags are SMALLINT 0 or 1; moments are BIGINT
-- with their unit at the end of the name (`_s` Unix seconds, `_ms` Unix milliseconds); days are INTEGER days since
-- 1970-01-01 UTC (`seconds / 86400`); bytes are BYTEA; JSON is TEXT. Words of a closed list are TEXT and listed beside their
-- column; the one exception is `event.kind`, a number explained by the table `event_kind`, because events are many.
-- Ids are handed out by the writing program, never by the database, and `id INTEGER PRIMARY KEY` is the row's own number.

-- One row per rule ever known, at its newest definition. Rules are never deleted: old findings must still display.
CREATE TABLE rule (
    id          INTEGER PRIMARY KEY,
    slug        TEXT     NOT NULL UNIQUE,     -- family/kebab-name, never renamed
    family      TEXT     NOT NULL,            -- a2a, mcp, oauth, registry, openapi, common
    axis        TEXT     NOT NULL,            -- conformity, reach, detection
    class       TEXT     NOT NULL,            -- finding, fact, state (reach and detection rules)
    severity    TEXT     NOT NULL,            -- error, warning, info
    impact      TEXT,                         -- breaks-clients, degrades, cosmetic; NULL for facts and hints
    security    SMALLINT NOT NULL DEFAULT 0,  -- 1: tagged security
    guess       SMALLINT NOT NULL DEFAULT 0,  -- 1: a guess by name, shown for review, left out of headline and counts
    basis       TEXT     NOT NULL,            -- spec, policy, hint
    evidence    TEXT     NOT NULL,            -- document, live, timing, time, history: what can prove it
    rank        INTEGER,                      -- place in the first release; NULL for the rest
    version     INTEGER  NOT NULL,            -- raised when its condition changes
    version_s   BIGINT   NOT NULL,            -- when this version was first seen by this database
    title       TEXT     NOT NULL,            -- the first sentence of its documentation
    withdrawn_s BIGINT                        -- when the catalogue in use stopped having it
);
CREATE INDEX rule_family ON rule (family);

-- One row per released set of (rule, version, severity, impact); its hash names it.
CREATE TABLE ruleset (
    id         INTEGER PRIMARY KEY,
    version    TEXT    NOT NULL,              -- as shown, such as 2026.11
    hash       BYTEA   NOT NULL UNIQUE,       -- sha256 over the sorted set
    released_s BIGINT  NOT NULL,              -- when this database first judged with it
    rules      INTEGER NOT NULL               -- how many rules it holds
);

-- What each released set held.
CREATE TABLE ruleset_rule (
    ruleset_id INTEGER NOT NULL REFERENCES ruleset (id),
    rule_id    INTEGER NOT NULL REFERENCES rule (id),
    version    INTEGER NOT NULL,
    severity   TEXT    NOT NULL,
    impact     TEXT,
    PRIMARY KEY (ruleset_id, rule_id)
);
CREATE INDEX ruleset_rule_rule ON ruleset_rule (rule_id, ruleset_id);
