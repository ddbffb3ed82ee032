-- Surfaces that fail together share something: a host, a network, a certificate. What a surface was last seen at is kept
-- beside it, so that it is known when nobody answers any more.

ALTER TABLE surface ADD COLUMN address TEXT;               -- connected to at the last answer, without port
ALTER TABLE surface ADD COLUMN prefix TEXT;                -- its network: /24 of IPv4, /48 of IPv6; NULL: not a public address
ALTER TABLE surface ADD COLUMN certificate TEXT;           -- issuer and end of the certificate shown then; NULL without TLS
ALTER TABLE surface ADD COLUMN leaf TEXT;                  -- hex of the sha256 of that certificate
ALTER TABLE surface ADD COLUMN server TEXT;                -- the `Server` header of that answer
CREATE INDEX surface_prefix ON surface (prefix) WHERE reach IN ('suspect', 'down') AND prefix IS NOT NULL;
CREATE INDEX surface_certificate ON surface (certificate) WHERE reach IN ('suspect', 'down') AND certificate IS NOT NULL;

ALTER TABLE incident ADD COLUMN reason TEXT;               -- the class of what they fail with: dns, connect, tls, http, answer
