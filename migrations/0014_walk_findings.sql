-- What the rules say of a registry's list itself: its pages, what only all entries of a walk together show, and entries
-- that changed or vanished since the walk before. It is about the registry, so it stands beside the walk and opens no
-- finding of a target.
CREATE TABLE walk_finding (
    walk_id     INTEGER NOT NULL REFERENCES walk (id),
    rule        TEXT    NOT NULL,               -- family/kebab-name
    severity    TEXT    NOT NULL,               -- the gravest of its occurrences
    impact      TEXT,                           -- the worst of its occurrences; NULL for hints
    occurrences INTEGER NOT NULL,               -- how often it fires
    places      TEXT    NOT NULL,               -- JSON: the first few as [[place, what is wrong there], ...]
    PRIMARY KEY (walk_id, rule)
);
