-- The silence that kept an alert quiet last, whatever has held it since: the first message after its end says whose it was.
ALTER TABLE alert ADD COLUMN silenced_by INTEGER;
UPDATE alert SET silenced_by = CAST(SUBSTR(held_by, 9) AS INTEGER) WHERE held_by LIKE 'silence:%' AND ended_s IS NULL;
