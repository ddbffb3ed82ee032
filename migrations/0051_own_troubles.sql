-- What goes wrong with crawling has a key for each trouble: the one of old stood for all of them and ends as the witnesses' does.
UPDATE alert SET key = 'crawl:witness' WHERE key = 'crawl:degraded' AND ended_s IS NULL;
CREATE INDEX alert_target ON alert (target_id) WHERE ended_s IS NULL;
UPDATE event_kind SET says = 'subject: crawl; a, b: listings missing and known, where a list lost too much; note: why'
WHERE id = 51;
