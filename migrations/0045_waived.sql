-- Which waiver covers a finding, so that an accepted deviation is shown beside it and counted apart; and the names that
-- silences, waivers and maintenance windows have in the settings file.

ALTER TABLE finding ADD COLUMN waiver_id INTEGER;      -- the waiver that covers it; NULL: none does
CREATE INDEX finding_waived ON finding (waiver_id) WHERE waiver_id IS NOT NULL;

ALTER TABLE silence ADD COLUMN slug TEXT;              -- its name in the settings; NULL: made elsewhere
ALTER TABLE waiver ADD COLUMN slug TEXT;
ALTER TABLE maintenance ADD COLUMN slug TEXT;
