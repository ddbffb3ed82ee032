-- Deploys: what they are told of, and which of them a span of a finding began and ended with.

ALTER TABLE deploy ADD COLUMN crawl_id INTEGER;             -- in which the first signal was seen; NULL: told by a marker
ALTER TABLE deploy ADD COLUMN environment TEXT;             -- as the marker says
ALTER TABLE deploy ADD COLUMN commit_id TEXT;               -- as the marker says
ALTER TABLE deploy ADD COLUMN settled_s BIGINT;             -- when its outcome was settled
CREATE INDEX deploy_unsettled ON deploy (id) WHERE outcome IS NULL;

ALTER TABLE finding_span ADD COLUMN close_confidence TEXT;  -- as `confidence`, of the end
CREATE INDEX finding_span_open_deploy ON finding_span (open_deploy) WHERE open_deploy IS NOT NULL;
CREATE INDEX finding_span_close_deploy ON finding_span (close_deploy) WHERE close_deploy IS NOT NULL;
