-- Surfaces under planned work: looks from one moment to the other are flagged, and count neither as up nor as down. Kept some
-- minutes ahead of a window's beginning; what is over stays until nothing is recorded late any more.
CREATE TABLE surface_work (
    surface_id     INTEGER NOT NULL REFERENCES surface (id),
    maintenance_id INTEGER NOT NULL,
    from_s         BIGINT  NOT NULL,
    to_s           BIGINT  NOT NULL,
    PRIMARY KEY (surface_id, maintenance_id, from_s)
);
