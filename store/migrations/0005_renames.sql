-- A job that was renamed: its rows keep the old name for ever, and the job that carries them on names it.

ALTER TABLE daybook_jobs ADD COLUMN formerly   TEXT NOT NULL DEFAULT ''; -- earlier names, newest first, with commas
ALTER TABLE daybook_jobs ADD COLUMN renamed_to TEXT NOT NULL DEFAULT ''; -- the job that carries this name's rows on

-- Changes of definition that a person accepted, of the one definition to the other only. new is empty where a job is removed.
CREATE TABLE daybook_accepted (
  job    TEXT /*ascii*/ NOT NULL,
  old    TEXT   NOT NULL,
  new    TEXT   NOT NULL,
  at_us  BIGINT NOT NULL,
  actor  TEXT   NOT NULL,
  note   TEXT   NOT NULL,
  PRIMARY KEY (job, old, new)
);
