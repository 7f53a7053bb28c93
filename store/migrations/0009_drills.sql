-- Drills: a done key was asked for again, and what came of it.

CREATE TABLE daybook_drills (
  id              TEXT   NOT NULL PRIMARY KEY,
  key             TEXT /*ascii*/ NOT NULL,
  job             TEXT /*ascii*/ NOT NULL,
  actor           TEXT   NOT NULL,
  at_us           BIGINT NOT NULL,
  ended_us        BIGINT NOT NULL,
  doors           TEXT   NOT NULL, -- with commas
  times           BIGINT NOT NULL,
  knocks          TEXT   NOT NULL, -- JSON
  runs_before     BIGINT NOT NULL,
  runs_after      BIGINT NOT NULL,
  attempts_before BIGINT NOT NULL,
  attempts_after  BIGINT NOT NULL,
  effects_before  BIGINT NOT NULL,
  effects_after   BIGINT NOT NULL,
  counted         BIGINT NOT NULL,
  count_before    TEXT   NOT NULL,
  count_after     TEXT   NOT NULL,
  seen            TEXT   NOT NULL  -- what came of it; empty: nothing
);
CREATE INDEX daybook_drills_job ON daybook_drills (job, at_us);
CREATE INDEX daybook_drills_at ON daybook_drills (at_us);
