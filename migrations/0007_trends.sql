-- Numbers by day, written as the day goes and never counted when a page is opened. All can be rebuilt from the spans.
-- The newest day of a cohort is its present state; a day without rows is a day nothing was recorded.

-- One rule in one cohort. Counted in surfaces, each once, however many targets name it.
CREATE TABLE rule_day (
    cohort_id   INTEGER NOT NULL REFERENCES cohort (id),
    rule_id     INTEGER NOT NULL REFERENCES rule (id),
    day         INTEGER NOT NULL,
    evaluated   INTEGER NOT NULL DEFAULT 0,       -- surfaces where it passed or fired when last looked at, at the end of the day
    failing     INTEGER NOT NULL DEFAULT 0,       -- of these with an open finding; for a fact: where it is set
    waived      INTEGER NOT NULL DEFAULT 0,
    occurrences INTEGER NOT NULL DEFAULT 0,
    opened      INTEGER NOT NULL DEFAULT 0,       -- during the day, first looks left out
    resolved    INTEGER NOT NULL DEFAULT 0,
    regressed   INTEGER NOT NULL DEFAULT 0,
    baseline    INTEGER NOT NULL DEFAULT 0,       -- opened at a first look
    PRIMARY KEY (cohort_id, rule_id, day)
);
CREATE INDEX rule_day_day ON rule_day (cohort_id, day);

-- One cohort, counted in targets that are not retired.
CREATE TABLE cohort_day (
    cohort_id     INTEGER NOT NULL REFERENCES cohort (id),
    day           INTEGER NOT NULL,
    targets       INTEGER NOT NULL DEFAULT 0,
    sound         INTEGER NOT NULL DEFAULT 0,     -- the five headlines add up to targets
    deviates      INTEGER NOT NULL DEFAULT 0,
    blocked       INTEGER NOT NULL DEFAULT 0,
    not_detected  INTEGER NOT NULL DEFAULT 0,
    not_evaluated INTEGER NOT NULL DEFAULT 0,
    up            INTEGER NOT NULL DEFAULT 0,     -- reach, apart; these seven add up to targets as well
    suspect       INTEGER NOT NULL DEFAULT 0,     -- failed to answer, not yet confirmed; or comes and goes
    down          INTEGER NOT NULL DEFAULT 0,
    gated         INTEGER NOT NULL DEFAULT 0,
    absent        INTEGER NOT NULL DEFAULT 0,
    throttled     INTEGER NOT NULL DEFAULT 0,
    unknown       INTEGER NOT NULL DEFAULT 0,     -- never looked at
    entries       INTEGER NOT NULL DEFAULT 0,     -- listings that are not gone: versions, never added to targets
    added         INTEGER NOT NULL DEFAULT 0,     -- during the day
    retired       INTEGER NOT NULL DEFAULT 0,
    opened        INTEGER NOT NULL DEFAULT 0,     -- findings, during the day, first looks left out
    resolved      INTEGER NOT NULL DEFAULT 0,
    regressed     INTEGER NOT NULL DEFAULT 0,     -- findings that regressed
    PRIMARY KEY (cohort_id, day)
);

-- The conformance share: passed MUST rules of judged MUST rules, per profile and family.
CREATE TABLE must_day (
    cohort_id INTEGER NOT NULL REFERENCES cohort (id),
    profile   TEXT    NOT NULL,
    family    TEXT    NOT NULL,
    day       INTEGER NOT NULL,
    passed    BIGINT  NOT NULL DEFAULT 0,
    judged    BIGINT  NOT NULL DEFAULT 0,
    unknown   BIGINT  NOT NULL DEFAULT 0,
    PRIMARY KEY (cohort_id, profile, family, day)
);

-- What readers of a chart must know at a date: a ruleset, a change of method, a gap of ours.
CREATE TABLE annotation (
    id    INTEGER PRIMARY KEY,
    at_s  BIGINT  NOT NULL,
    scope TEXT    NOT NULL,                       -- all, or cohort:, rule:, target: with its name
    kind  TEXT    NOT NULL,                       -- ruleset, method, gap, incident, deploy, note
    title TEXT    NOT NULL,
    body  TEXT    NOT NULL DEFAULT ''
);
CREATE INDEX annotation_at ON annotation (at_s);
