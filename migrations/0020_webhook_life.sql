-- What a receiver's life needs beside 0010: a name that settings can use, how it answers, what it was told in which order, and a key per format.

ALTER TABLE wh_endpoint ADD COLUMN slug TEXT NOT NULL DEFAULT '';          -- its name in settings, addresses and commands
ALTER TABLE wh_endpoint ADD COLUMN options TEXT NOT NULL DEFAULT '{}';     -- JSON: what its format needs, such as a template
ALTER TABLE wh_endpoint ADD COLUMN include_baseline SMALLINT NOT NULL DEFAULT 0; -- 1: first looks are sent too
ALTER TABLE wh_endpoint ADD COLUMN slowed SMALLINT NOT NULL DEFAULT 0;     -- 1: half its pace until it accepts one
ALTER TABLE wh_endpoint ADD COLUMN last_failure_s BIGINT;
ALTER TABLE wh_endpoint ADD COLUMN digest TEXT;                            -- JSON {"every","zone","hour"}; NULL: none
ALTER TABLE wh_endpoint ADD COLUMN digest_due_s BIGINT;                    -- next summary
ALTER TABLE wh_endpoint ADD COLUMN digest_event INTEGER NOT NULL DEFAULT 0; -- last event the last summary counted
ALTER TABLE wh_endpoint ADD COLUMN removed_s BIGINT;                       -- taken away; the row stays for its log
CREATE UNIQUE INDEX wh_endpoint_slug ON wh_endpoint (slug) WHERE removed_s IS NULL;

ALTER TABLE wh_delivery ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;       -- rows in wh_attempt; attempts begins anew at a replay
ALTER TABLE wh_delivery ADD COLUMN note TEXT;                              -- such as "will probably not heal by itself"
CREATE INDEX wh_delivery_queue ON wh_delivery (endpoint_id, next_s, message_id) WHERE state = 'pending';
CREATE INDEX wh_delivery_message ON wh_delivery (message_id);
CREATE INDEX wh_delivery_dead ON wh_delivery (done_s) WHERE state = 'dead';
