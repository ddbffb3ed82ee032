-- What rules of class fact said and too few looks confirmed: no row where nothing waits.

CREATE TABLE fact_pending (
    surface_id    INTEGER NOT NULL REFERENCES surface (id),
    rule_id       INTEGER NOT NULL REFERENCES rule (id),
    value         TEXT,                            -- what would be set; NULL: that it is not set any more
    pointer       TEXT    NOT NULL DEFAULT '',
    confirmations INTEGER NOT NULL,                -- looks that said so and count
    recent        INTEGER NOT NULL,                -- what the last looks said, as finding.recent
    others        INTEGER NOT NULL,                -- looks in a row that said anything but what is set
    since_s       BIGINT  NOT NULL,                -- the first look that said so
    PRIMARY KEY (surface_id, rule_id)
);
