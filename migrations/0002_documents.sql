-- Bodies and what was judged of them: each document once by its content, each judgement once by document, rules and context.

-- A body that some surface served, once however many serve it.
CREATE TABLE document (
    id            INTEGER PRIMARY KEY,
    hash          BYTEA    NOT NULL UNIQUE,     -- sha256 of the bytes as received (of the raw slice, where it came inside a list)
    semantic_hash BYTEA,                        -- sha256 of the canonical JSON (RFC 8785) less volatile pointers; NULL: not JSON
    kind          TEXT     NOT NULL,            -- a2a-card, server-json, openapi, ... (as surface.kind)
    media_type    TEXT,                         -- as served when first seen
    raw_len       BIGINT   NOT NULL,            -- bytes before compression, of the whole body even where it was cut
    cut           SMALLINT NOT NULL DEFAULT 0,  -- 1: only the first megabyte is kept
    dict_id       INTEGER,                      -- compression dictionary; NULL: none
    body          BYTEA,                        -- zstd; NULL once retention has let the bytes go
    first_seen_s  BIGINT   NOT NULL
);
CREATE INDEX document_semantic ON document (semantic_hash);

-- Places where a rule fires, shared by all findings that have the same ones.
CREATE TABLE occ_set (
    id    INTEGER PRIMARY KEY,
    hash  BYTEA   NOT NULL UNIQUE,              -- first 16 bytes of sha256 of the body before compression
    count INTEGER NOT NULL,                     -- how many occurrences
    body  BYTEA   NOT NULL                      -- zstd of JSON [{"pointer","message","severity","impact","line","column"}, ...]
);

-- Which rules were looked at in one judgement and which not, shared by the many judgements that agree on it.
-- Rules that fire stand in `judged` like those that pass; who fires is in `eval.fired`.
CREATE TABLE judged_set (
    id   INTEGER PRIMARY KEY,
    hash BYTEA   NOT NULL UNIQUE,               -- first 16 bytes of sha256 of the body before compression
    body BYTEA   NOT NULL                       -- zstd of JSON {"judged":[rule ids],"not_applicable":[...],"not_evaluated":{reason:[...]}}
);

-- One judgement. For documents it is also the memo: same document, rules and context need no second look.
-- For a conversation (no document) there is one row per surface, rewritten when the outcome changes.
CREATE TABLE eval (
    id            INTEGER PRIMARY KEY,
    document_id   INTEGER REFERENCES document (id),       -- NULL: a conversation
    ruleset_id    INTEGER NOT NULL REFERENCES ruleset (id),
    context_hash  BYTEA   NOT NULL,                       -- first 8 bytes of the hash of what rules read besides the document
    judged_set_id INTEGER NOT NULL REFERENCES judged_set (id),
    headline      TEXT    NOT NULL,                       -- blocked, deviates, sound, not_detected, not_evaluated
    profile       TEXT,                                   -- a2a-1.0, server-json-2025-12-11, ...; NULL: not detected
    known         TEXT,                                   -- declared, inferred, assumed, undetermined
    n_error       INTEGER NOT NULL,
    n_warn        INTEGER NOT NULL,
    fired         TEXT    NOT NULL,                       -- JSON [[rule id, occ_set id], ...]: findings, facts and states that hold
    judged_s      BIGINT  NOT NULL,
    UNIQUE (document_id, ruleset_id, context_hash)
);
