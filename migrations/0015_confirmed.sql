-- What confirming needs to remember: what the last looks at a finding said, when it may have begun or ended, and which look
-- of a surface was made out of turn to confirm a change.

-- `confirmations` counts firing looks while pending, passing looks while clearing, regular looks while flapping.
-- A finding that was suspected and never confirmed stays as `resolved` with `opens` 0: its flips still count.
ALTER TABLE finding ADD COLUMN recent INTEGER NOT NULL DEFAULT 1;      -- while pending: the last five looks, newest in bit 0, below a leading 1
ALTER TABLE finding ADD COLUMN refuted BIGINT NOT NULL DEFAULT 0;      -- beside `flips`: 1, a verification said otherwise, and the bit in `flips` is what that said
ALTER TABLE finding ADD COLUMN confirmed_s BIGINT;                     -- when it was confirmed open last, since it last calmed down
ALTER TABLE finding ADD COLUMN confirmed_before_s BIGINT;              -- the time before that
ALTER TABLE finding ADD COLUMN pending_as TEXT;                        -- as opened_as and cause, of an opening that is not confirmed
ALTER TABLE finding ADD COLUMN pending_cause TEXT;
ALTER TABLE finding ADD COLUMN moved_after_s BIGINT;                   -- while pending or clearing: the last judgement before it began or ended
ALTER TABLE finding ADD COLUMN moved_doc INTEGER;                      -- and the document it began or ended with

ALTER TABLE surface ADD COLUMN verifying INTEGER NOT NULL DEFAULT 0;   -- which look out of turn is due: 1, 2 or 3; 0: the next is a regular one
ALTER TABLE surface ADD COLUMN verify_from_s BIGINT;                   -- the look whose news they are to confirm
CREATE INDEX surface_verifying ON surface (next_due_s) WHERE verifying > 0;
CREATE INDEX finding_unconfirmed ON finding (surface_id) WHERE state IN ('pending', 'clearing');
