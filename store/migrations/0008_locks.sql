-- Runs with one serial key are never at work at once: the run that has the row of it here may be. Who waits for it is parked
-- in daybook_live, with hold 'waiting for serial key'.

CREATE TABLE daybook_locks (
  serial   TEXT /*ascii*/ NOT NULL PRIMARY KEY,
  key      TEXT /*ascii*/ NOT NULL, -- of the run that has it
  since_us BIGINT NOT NULL
);
CREATE INDEX daybook_locks_key ON daybook_locks (key);
CREATE INDEX daybook_live_serial ON daybook_live (serial, priority, due_us, key) WHERE hold = 'waiting for serial key';

-- Spans in which nothing starts, begun by people. Those of a file are worked out by who has the file.
CREATE TABLE daybook_freezes (
  id       TEXT /*ascii*/ NOT NULL PRIMARY KEY,
  name     TEXT   NOT NULL,
  priority TEXT   NOT NULL DEFAULT '', -- what it holds; '': everything
  from_us  BIGINT NOT NULL,
  until_us BIGINT NOT NULL,
  actor    TEXT   NOT NULL,
  note     TEXT   NOT NULL,
  ended_us BIGINT NOT NULL DEFAULT 0, -- when it ended; 0: it stands, or nobody has noted that it is over
  ended_by TEXT   NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX daybook_freezes_name ON daybook_freezes (name) WHERE ended_us = 0;
CREATE INDEX daybook_freezes_until ON daybook_freezes (until_us);

-- What a freeze put off: until when, and when it would have been due.
ALTER TABLE daybook_live ADD COLUMN frozen_us BIGINT NOT NULL DEFAULT 0;
ALTER TABLE daybook_live ADD COLUMN meant_us  BIGINT NOT NULL DEFAULT 0;
CREATE INDEX daybook_live_frozen ON daybook_live (frozen_us) WHERE frozen_us > 0;
