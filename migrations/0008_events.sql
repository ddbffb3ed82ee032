-- What happened, append-only with a growing id: the only source of feeds, alerts and webhooks.

-- The words for `event.kind`, and what `subject_id`, `a` and `b` hold for each.
CREATE TABLE event_kind (
    id   SMALLINT PRIMARY KEY,
    word TEXT     NOT NULL UNIQUE,
    says TEXT     NOT NULL
);
INSERT INTO event_kind (id, word, says) VALUES
    (1, 'finding.opened', 'subject: finding; a: 1 when a first look; note: opened_as and cause'),
    (2, 'finding.regressed', 'subject: finding; note: opened_as and cause'),
    (3, 'finding.resolved', 'subject: finding; note: resolution'),
    (4, 'finding.flapping_started', 'subject: finding'),
    (5, 'finding.flapping_stopped', 'subject: finding; note: open or resolved'),
    (10, 'target.added', 'subject: source'),
    (11, 'target.down', 'subject: surface; a: since (seconds); note: reason'),
    (12, 'target.recovered', 'subject: surface; a: down since (seconds)'),
    (13, 'target.headline_changed', 'a, b: headline rank before and after'),
    (14, 'target.gone', 'subject: surface'),
    (15, 'target.retired', 'subject: source; note: reason'),
    (16, 'target.returned', 'subject: source'),
    (20, 'incident.opened', 'subject: incident'),
    (21, 'incident.updated', 'subject: incident'),
    (22, 'incident.resolved', 'subject: incident'),
    (30, 'document.changed', 'subject: surface; a, b: document before and after'),
    (31, 'deploy.recorded', 'subject: deploy'),
    (32, 'deploy.evaluated', 'subject: deploy; note: outcome'),
    (40, 'rule.prevalence_jumped', 'a, b: failing before and after; note: cohort'),
    (41, 'ruleset.released', 'subject: ruleset; a: rules'),
    (50, 'crawl.completed', 'subject: crawl'),
    (51, 'crawl.degraded', 'subject: crawl; note: why'),
    (60, 'alert_group.opened', 'subject: group'),
    (61, 'alert_group.updated', 'subject: group'),
    (62, 'alert_group.resolved', 'subject: group'),
    (70, 'webhook.failing', 'subject: endpoint'),
    (71, 'webhook.disabled', 'subject: endpoint; note: why'),
    (72, 'webhook.message_dead', 'subject: endpoint; note: message'),
    (90, 'ping', 'nothing');

-- No foreign keys on purpose: an event outlives its subjects.
CREATE TABLE event (
    id         INTEGER PRIMARY KEY,
    at_s       BIGINT   NOT NULL,
    kind       SMALLINT NOT NULL,                 -- event_kind.id
    target_id  INTEGER,                           -- one target the surface belongs to, where it belongs to one
    surface_id INTEGER,
    rule_id    INTEGER,
    subject_id INTEGER,
    a          BIGINT,
    b          BIGINT,
    note       TEXT
);
CREATE INDEX event_target ON event (target_id, id) WHERE target_id IS NOT NULL;
CREATE INDEX event_kind_id ON event (kind, id);
CREATE INDEX event_rule ON event (rule_id, id) WHERE rule_id IS NOT NULL;

-- How far each reader of events has come. It moves in the transaction that holds what the reader made of them.
CREATE TABLE event_cursor (
    reader   TEXT    PRIMARY KEY,                 -- alerts, prevalence, ...
    event_id INTEGER NOT NULL
);
