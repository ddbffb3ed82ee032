-- What a conversation shows about an endpoint as a whole: what it speaks and who gets in, so that lists can ask for it.

ALTER TABLE surface ADD COLUMN era TEXT;       -- legacy, modern, dual, unknown; NULL: no endpoint, or never judged
ALTER TABLE surface ADD COLUMN access TEXT;    -- open, auth_required, auth_partial, payment_required, not_mcp, unreachable, rate_limited
ALTER TABLE surface ADD COLUMN standing TEXT;  -- all of it as JSON: revisions, protocols and how sure each is, client registration
