-- Who may do what, and who did.

-- A person who signs in.
CREATE TABLE account (
    id           INTEGER PRIMARY KEY,
    login        TEXT    NOT NULL UNIQUE,
    name         TEXT    NOT NULL,
    email        TEXT,
    password     TEXT,                                -- Argon2id; NULL: signs in elsewhere
    totp_enc     BYTEA,
    subject      TEXT    UNIQUE,                      -- issuer and subject of single sign-on
    created_s    BIGINT  NOT NULL,
    disabled_s   BIGINT,
    last_login_s BIGINT
);

-- A signed-in browser.
CREATE TABLE login_session (
    hash       BYTEA   PRIMARY KEY,                   -- sha256 of the cookie's secret
    account_id INTEGER NOT NULL REFERENCES account (id),
    created_s  BIGINT  NOT NULL,
    seen_s     BIGINT  NOT NULL,
    expires_s  BIGINT  NOT NULL,
    csrf       BYTEA   NOT NULL
);
CREATE INDEX login_session_expires ON login_session (expires_s);

-- What an account may do, everywhere or for one owner or tag.
CREATE TABLE role_binding (
    account_id INTEGER NOT NULL REFERENCES account (id),
    role       TEXT    NOT NULL,                      -- viewer, operator, editor, admin
    scope      TEXT    NOT NULL DEFAULT '',           -- empty, owner:, tag:
    PRIMARY KEY (account_id, role, scope)
);

-- A token for programs; shown once, kept as a hash.
CREATE TABLE api_token (
    id          INTEGER PRIMARY KEY,
    hash        BYTEA   NOT NULL UNIQUE,              -- sha256 of the whole token
    prefix      TEXT    NOT NULL,                     -- its first characters, to recognise it by
    title       TEXT    NOT NULL,
    scopes      TEXT    NOT NULL,                     -- JSON list: read, deploys:write, alerts:write, admin
    owner_slug  TEXT,                                 -- limited to one owner; NULL: not limited
    created_by  TEXT    NOT NULL,
    created_s   BIGINT  NOT NULL,
    expires_s   BIGINT,
    revoked_s   BIGINT,
    last_used_s BIGINT
);

-- Every write a person or token made. No foreign keys: it outlives its subjects.
CREATE TABLE audit (
    id          INTEGER PRIMARY KEY,
    at_s        BIGINT  NOT NULL,
    actor       TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    entity      TEXT    NOT NULL,
    before_json TEXT,
    after_json  TEXT,
    ip          TEXT
);
CREATE INDEX audit_at ON audit (at_s);

-- A filter someone gave a name.
CREATE TABLE saved_view (
    id         INTEGER PRIMARY KEY,
    account_id INTEGER REFERENCES account (id),       -- NULL: for everybody
    slug       TEXT    NOT NULL UNIQUE,
    title      TEXT    NOT NULL,
    query      TEXT    NOT NULL,
    created_s  BIGINT  NOT NULL
);

-- A single check someone asked for, kept for a while under its own address.
CREATE TABLE report (
    id         TEXT    PRIMARY KEY,
    at_s       BIGINT  NOT NULL,
    expires_s  BIGINT  NOT NULL,
    input      TEXT    NOT NULL,                      -- the address, or "pasted"
    kind       TEXT,
    state      TEXT    NOT NULL,                      -- waiting, running, done, failed
    body       BYTEA                                  -- zstd of the report's JSON
);
CREATE INDEX report_expires ON report (expires_s);
