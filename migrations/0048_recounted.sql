-- Days of the trends are counted again from the events. Only events from this number on tell whether a finding that begins to
-- come and go began with it.
CREATE TABLE recount_from (event_id INTEGER NOT NULL);
INSERT INTO recount_from (event_id) SELECT COALESCE(MAX(id), 0) + 1 FROM event;

-- What the last count of a day came to.
CREATE TABLE recount (
    day   INTEGER PRIMARY KEY,                    -- days since 1970
    at_s  BIGINT  NOT NULL,                       -- when it was counted again
    wrong INTEGER NOT NULL                        -- numbers that differed
);
