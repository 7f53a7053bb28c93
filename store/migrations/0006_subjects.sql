-- Runs whose listing makes a run of each subject. What ends of those is a row of its own, so that no end writes the parent:
-- whoever looks after the parent reads and removes them.

ALTER TABLE daybook_runs ADD COLUMN fans   BIGINT NOT NULL DEFAULT 0; -- its subjects were listed
ALTER TABLE daybook_runs ADD COLUMN listed BIGINT NOT NULL DEFAULT 0; -- of a subject: the fence of its parent that listed it last
ALTER TABLE daybook_live ADD COLUMN rests  BIGINT NOT NULL DEFAULT 0; -- no subject of it is under way
ALTER TABLE daybook_letters ADD COLUMN parent TEXT /*ascii*/ NOT NULL DEFAULT '';

CREATE INDEX daybook_runs_children ON daybook_runs (parent, state) WHERE parent <> '';
CREATE INDEX daybook_live_turn ON daybook_live (parent, key) WHERE hold = 'turn';
CREATE INDEX daybook_live_out ON daybook_live (parent, due_us) WHERE parent <> '' AND hold <> 'turn';
CREATE INDEX daybook_letters_children ON daybook_letters (parent, key) WHERE state = 'open' AND parent <> '';

CREATE TABLE daybook_fans (
  key      TEXT /*ascii*/ NOT NULL PRIMARY KEY,
  job      TEXT /*ascii*/ NOT NULL,
  subjects BIGINT NOT NULL DEFAULT 0,
  repeated BIGINT NOT NULL DEFAULT 0,
  faulty   BIGINT NOT NULL DEFAULT 0,
  fault    TEXT   NOT NULL DEFAULT '', -- the first of the rows that name no subject
  vanished BIGINT NOT NULL DEFAULT 0,
  breaker  TEXT   NOT NULL DEFAULT '',
  looks    BIGINT NOT NULL DEFAULT 0,
  look_us  BIGINT NOT NULL DEFAULT 0 -- when it is looked at, whatever ends; 0: when something ends
);
CREATE INDEX daybook_fans_look ON daybook_fans (look_us) WHERE look_us > 0;

CREATE TABLE daybook_ends (
  parent TEXT /*ascii*/ NOT NULL,
  id     TEXT /*ascii*/ NOT NULL,
  key    TEXT   NOT NULL,
  done   BIGINT NOT NULL DEFAULT 0,
  failed BIGINT NOT NULL DEFAULT 0,
  error  TEXT   NOT NULL DEFAULT '',
  at_us  BIGINT NOT NULL,
  PRIMARY KEY (parent, id)
) /*clustered*/;
