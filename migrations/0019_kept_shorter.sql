-- Short spans of reach are joined to the one before after a year, and how many there were is remembered.
ALTER TABLE reach_span ADD COLUMN merged INTEGER NOT NULL DEFAULT 0;  -- shorter spans of other states that lie in it
