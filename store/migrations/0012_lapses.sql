-- A ledger that forgot: when that was found, since when it knows nothing, and how far the writes of each node had come.

CREATE TABLE daybook_lapses (
  number   BIGINT NOT NULL PRIMARY KEY,
  since_us BIGINT NOT NULL,
  found_us BIGINT NOT NULL,
  ended_us BIGINT NOT NULL DEFAULT 0, -- 0: its freeze stands
  node     TEXT   NOT NULL DEFAULT '',
  detail   TEXT   NOT NULL
);

ALTER TABLE daybook_ledger ADD COLUMN lapse     BIGINT NOT NULL DEFAULT 0; -- number of the newest
ALTER TABLE daybook_ledger ADD COLUMN copied_us BIGINT NOT NULL DEFAULT 0; -- this is a backup that was made then

ALTER TABLE daybook_nodes ADD COLUMN mark BIGINT NOT NULL DEFAULT 0; -- rises with each beat, and with each effect that is marked begun

ALTER TABLE daybook_live ADD COLUMN once BIGINT NOT NULL DEFAULT 0; -- its work has effects that happen once only
UPDATE daybook_live SET once = 1 WHERE EXISTS (SELECT 1 FROM daybook_runs r WHERE r.key = daybook_live.key AND (r.effects = 'once' OR r.steps = 1));

ALTER TABLE daybook_steps ADD COLUMN doubt BIGINT NOT NULL DEFAULT 0; -- number of the lapse by which it was unknown before it began

CREATE INDEX daybook_live_restored ON daybook_live (key) WHERE hold = 'restored';
