-- When a place of a document was last seen to differ: the run is over with a fetch that brought the same document again.
ALTER TABLE volatile_pointer ADD COLUMN seen_s BIGINT;
