-- A crawl that can be left alone: what a registry was seen not to know, who is looked at first, and who not at all.

-- When the registry was seen to ignore `updated_since`; from then on it is walked completely. NULL: it knows the parameter.
ALTER TABLE source ADD COLUMN since_ignored_s BIGINT;
-- Pages of its last complete full walk: a short list is walked completely in every pass.
ALTER TABLE source ADD COLUMN full_pages INTEGER;

-- Looked at before all others that are due. 1: once, because somebody asked or because it has just changed; 2: always, the
-- operator's own.
ALTER TABLE surface ADD COLUMN urgent SMALLINT NOT NULL DEFAULT 0;
-- 1: every target that shows it is paused, so it is not looked at.
ALTER TABLE surface ADD COLUMN paused SMALLINT NOT NULL DEFAULT 0;
CREATE INDEX surface_urgent ON surface (next_due_s) WHERE urgent > 0;
