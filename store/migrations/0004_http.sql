-- What the HTTP door keeps: the secret that tokens of attempts are made with, the tokens of programs and people, and the
-- answers to calls that brought an Idempotency-Key.

ALTER TABLE daybook_ledger ADD COLUMN secret TEXT NOT NULL DEFAULT '';

CREATE TABLE daybook_tokens (
  number     BIGINT NOT NULL PRIMARY KEY, -- for people: tk_1, tk_2 …
  name       TEXT   NOT NULL,
  role       TEXT   NOT NULL,
  hash       TEXT /*ascii*/ NOT NULL, -- of the token, which is kept nowhere
  made_us    BIGINT NOT NULL,
  made_by    TEXT   NOT NULL,
  revoked_us BIGINT NOT NULL DEFAULT 0,
  revoked_by TEXT   NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX daybook_tokens_hash ON daybook_tokens (hash);

CREATE TABLE daybook_calls (
  caller      TEXT /*ascii*/ NOT NULL, -- the token that was used
  key         TEXT /*ascii*/ NOT NULL, -- as the header brought it
  fingerprint TEXT   NOT NULL,
  status      BIGINT NOT NULL DEFAULT 0, -- 0: under way, until then
  until_us    BIGINT NOT NULL,
  at_us       BIGINT NOT NULL,
  header      TEXT   NOT NULL DEFAULT '',
  body        TEXT   NOT NULL DEFAULT '',
  PRIMARY KEY (caller, key)
);
CREATE INDEX daybook_calls_at ON daybook_calls (at_us);
