-- Why each alert was or was not told, whom it was told to, and what groups say.

ALTER TABLE alert ADD COLUMN title TEXT NOT NULL DEFAULT '';
ALTER TABLE alert ADD COLUMN surface_id INTEGER;
ALTER TABLE alert ADD COLUMN rule TEXT;                          -- its rule's slug
ALTER TABLE alert ADD COLUMN facts TEXT NOT NULL DEFAULT '{}';   -- JSON of what matchers read, as it was when it opened
ALTER TABLE alert ADD COLUMN why TEXT NOT NULL DEFAULT '[]';     -- JSON list: one sentence for each step of the pipeline
ALTER TABLE alert ADD COLUMN by_what TEXT NOT NULL DEFAULT 'target'; -- what it shares with others: incident, deploy, ruleset, rule, target
ALTER TABLE alert ADD COLUMN by_key TEXT NOT NULL DEFAULT '';
ALTER TABLE alert ADD COLUMN ended_as TEXT;                      -- resolved, flapping, retired
ALTER TABLE alert ADD COLUMN end_told_s BIGINT;                  -- its end was told
CREATE INDEX alert_waiting ON alert (route_id, opened_s) WHERE ended_s IS NULL AND notified_s IS NULL;
CREATE INDEX alert_surface ON alert (surface_id) WHERE ended_s IS NULL;
CREATE INDEX alert_opened ON alert (route_id, opened_s);

ALTER TABLE alert_group ADD COLUMN summary TEXT NOT NULL DEFAULT '';

-- Whom an opening was told to, and its end: none is told twice, and no end without its opening.
CREATE TABLE alert_told (
    alert_id    INTEGER NOT NULL REFERENCES alert (id),
    endpoint_id INTEGER NOT NULL,
    message_id  TEXT    NOT NULL,
    end_message TEXT,                                            -- NULL: its end was not told yet
    PRIMARY KEY (alert_id, endpoint_id)
);

ALTER TABLE silence ADD COLUMN told SMALLINT NOT NULL DEFAULT 0; -- 1: the first message after its end has said so
ALTER TABLE route ADD COLUMN removed_s BIGINT;
