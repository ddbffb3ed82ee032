-- What keeping house needs: the size of every table day by day, the words for a disk that fills up, and the way from a crawl
-- to its walk, without which forgetting an old crawl would read every walk.

-- How much room each table took, measured once a day and when the program starts; growth is the difference between days.
CREATE TABLE table_size (
    day       INTEGER NOT NULL,
    name      TEXT    NOT NULL,                   -- the table; `(free)`: pages of the file that hold nothing
    bytes     BIGINT  NOT NULL,                   -- with its indices
    row_count BIGINT,                             -- on PostgreSQL as its statistics estimate it; NULL: not known
    PRIMARY KEY (day, name)
);

CREATE INDEX walk_crawl ON walk (crawl_id);

INSERT INTO event_kind (id, word, says) VALUES
    (80, 'disk.filling', 'a: percent of the disk in use'),
    (81, 'disk.full', 'a: percent of the disk in use; bodies are no longer kept'),
    (82, 'disk.relieved', 'a: percent of the disk in use');
