-- A summary says what happened since the one before; and the last message about a group to a receiver is looked for.
ALTER TABLE wh_endpoint ADD COLUMN digest_s BIGINT;        -- until when the last summary told, or since when one is asked for
CREATE INDEX wh_message_group ON wh_message (group_id) WHERE group_id IS NOT NULL;
