-- Answers to writes that carried an Idempotency-Key, for a day: the same request again is answered as before and done once.
CREATE TABLE kept_answer (
    who      TEXT    NOT NULL,                        -- operator, or token and its number
    key_hash BYTEA   NOT NULL,                        -- sha256 of the key
    request  BYTEA   NOT NULL,                        -- sha256 of address and body
    at_s     BIGINT  NOT NULL,                        -- when it was first asked
    answer   BYTEA,                                   -- sealed with the key of the installation; NULL: it is being answered
    PRIMARY KEY (who, key_hash)
);
CREATE INDEX kept_answer_at ON kept_answer (at_s);
