-- Prevalence in every cohort, counted three ways: by surface, by name, and by host; and how much could not be judged.
-- Cohorts beyond all and the kinds are counted from the present state about once an hour, so that one that is new or whose
-- members changed needs no history of its own; a row is written for a rule that fails in it, or did when it was last counted.
ALTER TABLE rule_day ADD COLUMN unknown           INTEGER NOT NULL DEFAULT 0;  -- surfaces where it applies and could not be judged
ALTER TABLE rule_day ADD COLUMN targets_evaluated INTEGER NOT NULL DEFAULT 0;  -- targets with a surface where it was judged
ALTER TABLE rule_day ADD COLUMN targets_failing   INTEGER NOT NULL DEFAULT 0;  -- targets with a surface where it fails
ALTER TABLE rule_day ADD COLUMN hosts_evaluated   INTEGER NOT NULL DEFAULT 0;  -- the same for hosts
ALTER TABLE rule_day ADD COLUMN hosts_failing     INTEGER NOT NULL DEFAULT 0;
ALTER TABLE cohort ADD COLUMN origin  TEXT NOT NULL DEFAULT 'built-in';        -- built-in, found (made for a source, profile, host, ... there is), operator
ALTER TABLE cohort ADD COLUMN members INTEGER NOT NULL DEFAULT 0;              -- targets in it when it was last counted
ALTER TABLE cohort ADD COLUMN problem TEXT;                                    -- why its query cannot be answered; NULL: it can
