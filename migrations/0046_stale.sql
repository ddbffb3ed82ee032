-- What tells that a finding is stale: how often its surface is looked at, and when a look last reached its rule.

ALTER TABLE surface ADD COLUMN every_s INTEGER;        -- between regular looks, as the last one was planned; NULL: not known
ALTER TABLE finding ADD COLUMN judged_s BIGINT;        -- the last judgement that reached the rule, while unjudged_since_s is set
