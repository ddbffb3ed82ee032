-- What is wrong where, since when, how often before.

-- One row per surface and rule (and instance) that ever fired. Never deleted while the target lives: that memory is what makes "again" knowable.
CREATE TABLE finding (
    id              INTEGER PRIMARY KEY,
    surface_id      INTEGER  NOT NULL REFERENCES surface (id),
    rule_id         INTEGER  NOT NULL REFERENCES rule (id),
    instance        TEXT     NOT NULL DEFAULT '', -- a skill id, a scheme name, where such a thing has a life of its own
    state           TEXT     NOT NULL,            -- pending, open, clearing, resolved, flapping, retired
    opened_as       TEXT,                         -- baseline, first, broke, again, rule; NULL: never confirmed
    cause           TEXT,                         -- baseline, document, behaviour, clock, rule, joint, unknown
    resolution      TEXT,                         -- fixed, document_gone, target_retired, rule_changed; NULL: not over
    severity        TEXT     NOT NULL,            -- of its worst occurrence
    impact          TEXT,
    security        SMALLINT NOT NULL DEFAULT 0,
    first_seen_s    BIGINT   NOT NULL,            -- first time it fired
    opened_s        BIGINT,                       -- start of its present or last span
    closed_s        BIGINT,                       -- end of its last span; NULL: open, or never opened
    last_fired_s    BIGINT   NOT NULL,            -- as of its last change; while nothing changes, surface.last_evaluated_s is the truth
    unjudged_since_s BIGINT,                      -- the newest judgement of the surface did not reach this rule since then; NULL: it did
    changed_s       BIGINT   NOT NULL,            -- last change of state or occurrences
    pending_since_s BIGINT,
    clear_since_s   BIGINT,
    confirmations   INTEGER  NOT NULL DEFAULT 0,  -- observations counted towards opening or closing
    opens           INTEGER  NOT NULL DEFAULT 0,  -- how often it opened
    flips           BIGINT   NOT NULL DEFAULT 0,  -- evaluated observations up to the last change, newest in bit 0: 1 fired; 32 are kept
    observed        INTEGER  NOT NULL DEFAULT 0,  -- how many of these bits are real
    flips_at        INTEGER  NOT NULL DEFAULT 0,  -- surface.evaluations at that time; the ones since then were equal
    occ_set_id      INTEGER  REFERENCES occ_set (id),  -- where it fires, or fired last
    occurrences     INTEGER  NOT NULL DEFAULT 0,
    rule_version    INTEGER  NOT NULL,            -- of the rule when it last fired
    revision        INTEGER  NOT NULL DEFAULT 1,  -- grows with every change
    UNIQUE (surface_id, rule_id, instance)
);
CREATE INDEX finding_rule ON finding (rule_id, surface_id) WHERE state IN ('open', 'clearing', 'flapping');
CREATE INDEX finding_changed ON finding (changed_s DESC, id);

-- When it held.
CREATE TABLE finding_span (
    finding_id   INTEGER NOT NULL REFERENCES finding (id),
    from_s       BIGINT  NOT NULL,
    to_s         BIGINT,
    opened_as    TEXT    NOT NULL,
    cause        TEXT    NOT NULL,
    resolution   TEXT,
    open_doc     INTEGER REFERENCES document (id),
    close_doc    INTEGER REFERENCES document (id),
    open_deploy  INTEGER REFERENCES deploy (id),
    close_deploy INTEGER REFERENCES deploy (id),
    confidence   TEXT,                            -- certain, likely, possible, none: how sure the deploy is
    occ_set_id   INTEGER REFERENCES occ_set (id), -- where it fired last within the span
    PRIMARY KEY (finding_id, from_s)
);

-- Attributes of a surface with history, from rules of class fact: never findings, never counted.
CREATE TABLE fact_span (
    surface_id INTEGER NOT NULL REFERENCES surface (id),
    rule_id    INTEGER NOT NULL REFERENCES rule (id),
    from_s     BIGINT  NOT NULL,
    to_s       BIGINT,
    value      TEXT    NOT NULL,                  -- what the rule says of it, shortened
    pointer    TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (surface_id, rule_id, from_s)
);
CREATE INDEX fact_span_rule ON fact_span (rule_id, surface_id) WHERE to_s IS NULL;
