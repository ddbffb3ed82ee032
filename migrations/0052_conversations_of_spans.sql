-- In which recorded conversation a span began and ended; NULL: none was kept, or it was before this was noted.
ALTER TABLE finding_span ADD COLUMN open_session INTEGER;
ALTER TABLE finding_span ADD COLUMN close_session INTEGER;
-- 1: the odd requests were made in it. The newest of these stays beside the newest of all.
ALTER TABLE probe_session ADD COLUMN is_odd SMALLINT NOT NULL DEFAULT 0;
