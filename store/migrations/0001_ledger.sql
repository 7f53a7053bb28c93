-- The ledger. Times are UTC microseconds, 0 for none; there are no NULLs; keys are ASCII and sort by byte.
-- daybook_live holds what is due or running and stays small; daybook_runs keeps one row a key for ever. While a run is
-- live, its row in daybook_runs has state '' and the state stands in daybook_live.

CREATE TABLE daybook_ledger (
  id          TEXT   NOT NULL PRIMARY KEY,
  created_us  BIGINT NOT NULL,
  sequence    BIGINT NOT NULL,
  written_us  BIGINT NOT NULL
);

CREATE TABLE daybook_jobs (
  name          TEXT /*ascii*/ NOT NULL PRIMARY KEY,
  home          TEXT   NOT NULL DEFAULT '',
  revision      BIGINT NOT NULL,
  since_us      BIGINT NOT NULL,
  definition    TEXT   NOT NULL,
  cursor_us     BIGINT NOT NULL,
  next_us       BIGINT NOT NULL DEFAULT 0, -- the next fire as it was worked out last: a cache, kept to tell when zone data moves it
  next_fire     TEXT   NOT NULL DEFAULT '',
  first_seen_us BIGINT NOT NULL,
  scanned_us    BIGINT NOT NULL DEFAULT 0,
  paused        BIGINT NOT NULL DEFAULT 0,
  paused_us     BIGINT NOT NULL DEFAULT 0,
  paused_by     TEXT   NOT NULL DEFAULT '',
  paused_note   TEXT   NOT NULL DEFAULT '',
  fault         TEXT   NOT NULL DEFAULT '',
  fault_us      BIGINT NOT NULL DEFAULT 0,
  retired_us    BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE daybook_revisions (
  job        TEXT /*ascii*/ NOT NULL,
  revision   BIGINT NOT NULL,
  since_us   BIGINT NOT NULL,
  definition TEXT   NOT NULL,
  PRIMARY KEY (job, revision)
);

CREATE TABLE daybook_runs (
  key            TEXT /*ascii*/ NOT NULL PRIMARY KEY,
  job            TEXT /*ascii*/ NOT NULL,
  label          TEXT   NOT NULL,
  date           TEXT   NOT NULL,
  subject        TEXT   NOT NULL DEFAULT '',
  parent         TEXT   NOT NULL DEFAULT '',
  start_us       BIGINT NOT NULL,
  end_us         BIGINT NOT NULL,
  cover_start_us BIGINT NOT NULL,
  cover_end_us   BIGINT NOT NULL,
  fire           TEXT   NOT NULL DEFAULT '',
  zone           TEXT   NOT NULL DEFAULT '',
  tzdata         TEXT   NOT NULL DEFAULT '',
  priority       TEXT   NOT NULL,
  lane           TEXT   NOT NULL,
  home           TEXT   NOT NULL DEFAULT '',
  effects        TEXT   NOT NULL,
  work           TEXT   NOT NULL,
  steps          BIGINT NOT NULL DEFAULT 0,
  line           TEXT   NOT NULL DEFAULT '',
  serial         TEXT   NOT NULL DEFAULT '',
  revision       BIGINT NOT NULL DEFAULT 0,
  state          TEXT   NOT NULL,
  reason         TEXT   NOT NULL DEFAULT '',
  covered_by     TEXT   NOT NULL DEFAULT '',
  fence          BIGINT NOT NULL DEFAULT 0,
  claim          TEXT   NOT NULL DEFAULT '',
  node           TEXT   NOT NULL DEFAULT '',
  attempts       BIGINT NOT NULL DEFAULT 0,
  failures       BIGINT NOT NULL DEFAULT 0,
  losses         BIGINT NOT NULL DEFAULT 0,
  payload        TEXT   NOT NULL DEFAULT '',
  payload_hash   TEXT   NOT NULL DEFAULT '',
  triggers       BIGINT NOT NULL DEFAULT 0,
  refused        BIGINT NOT NULL DEFAULT 0,
  first_source   TEXT   NOT NULL DEFAULT '',
  first_actor    TEXT   NOT NULL DEFAULT '',
  created_us     BIGINT NOT NULL,
  not_before_us  BIGINT NOT NULL DEFAULT 0,
  started_us     BIGINT NOT NULL DEFAULT 0,
  ended_us       BIGINT NOT NULL DEFAULT 0,
  last_error     TEXT   NOT NULL DEFAULT '',
  result         TEXT   NOT NULL DEFAULT '',
  result_hash    TEXT   NOT NULL DEFAULT '',
  counts         TEXT   NOT NULL DEFAULT '',
  pruned_us      BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX daybook_runs_window ON daybook_runs (job, start_us) WHERE parent = '';
CREATE INDEX daybook_runs_date ON daybook_runs (date) WHERE parent = '';
CREATE INDEX daybook_runs_unpruned ON daybook_runs (job, ended_us) WHERE pruned_us = 0 AND ended_us > 0;

CREATE TABLE daybook_live (
  key          TEXT /*ascii*/ NOT NULL PRIMARY KEY,
  job          TEXT /*ascii*/ NOT NULL,
  state        TEXT   NOT NULL,
  reason       TEXT   NOT NULL DEFAULT '',
  hold         TEXT   NOT NULL DEFAULT '',
  due_us       BIGINT NOT NULL,
  priority     TEXT   NOT NULL,
  lane         TEXT   NOT NULL,
  home         TEXT   NOT NULL DEFAULT '',
  line         TEXT   NOT NULL DEFAULT '',
  start_us     BIGINT NOT NULL DEFAULT 0,
  serial       TEXT   NOT NULL DEFAULT '',
  parent       TEXT   NOT NULL DEFAULT '',
  fence        BIGINT NOT NULL DEFAULT 0,
  claim        TEXT   NOT NULL DEFAULT '',
  node         TEXT   NOT NULL DEFAULT '',
  lease_us     BIGINT NOT NULL DEFAULT 0,
  asking       TEXT   NOT NULL DEFAULT '',
  claimed_us   BIGINT NOT NULL DEFAULT 0,
  begun_us     BIGINT NOT NULL DEFAULT 0,
  attempts     BIGINT NOT NULL DEFAULT 0,
  failures     BIGINT NOT NULL DEFAULT 0,
  losses       BIGINT NOT NULL DEFAULT 0,
  again        BIGINT NOT NULL DEFAULT 0,
  cancelled_by TEXT   NOT NULL DEFAULT '',
  last_error   TEXT   NOT NULL DEFAULT ''
) /*clustered*/;
CREATE INDEX daybook_live_due ON daybook_live (lane, home, priority, due_us) WHERE state <> 'running' AND hold = '' AND asking = '';
CREATE INDEX daybook_live_lease ON daybook_live (lease_us) WHERE lease_us > 0;
CREATE INDEX daybook_live_job ON daybook_live (job);
CREATE INDEX daybook_live_line ON daybook_live (line, start_us) WHERE line <> '';
-- The proof that runs of one line do not overlap, whatever the claims believed.
CREATE UNIQUE INDEX daybook_live_overlap ON daybook_live (line) WHERE line <> '' AND state = 'running';

CREATE TABLE daybook_attempts (
  key         TEXT /*ascii*/ NOT NULL,
  fence       BIGINT NOT NULL,
  question    BIGINT NOT NULL DEFAULT 0, -- 0 for a try, else when the far side was asked
  number      BIGINT NOT NULL,
  claim       TEXT   NOT NULL DEFAULT '',
  node        TEXT   NOT NULL DEFAULT '',
  wire_key    TEXT   NOT NULL DEFAULT '',
  command     TEXT   NOT NULL DEFAULT '',
  revision    BIGINT NOT NULL DEFAULT 0,
  claimed_us  BIGINT NOT NULL DEFAULT 0,
  begun_us    BIGINT NOT NULL DEFAULT 0,
  ended_us    BIGINT NOT NULL DEFAULT 0,
  result      TEXT   NOT NULL DEFAULT '',
  error       TEXT   NOT NULL DEFAULT '',
  detail      TEXT   NOT NULL DEFAULT '',
  data        TEXT   NOT NULL DEFAULT '',
  late_result TEXT   NOT NULL DEFAULT '',
  late_error  TEXT   NOT NULL DEFAULT '',
  late_us     BIGINT NOT NULL DEFAULT 0,
  late_taken  BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (key, fence, question)
);

CREATE TABLE daybook_outputs (
  key     TEXT /*ascii*/ NOT NULL,
  fence   BIGINT NOT NULL,
  text    TEXT   NOT NULL,
  omitted BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (key, fence)
);

CREATE TABLE daybook_steps (
  key        TEXT /*ascii*/ NOT NULL,
  step       TEXT /*ascii*/ NOT NULL,
  effect     BIGINT NOT NULL DEFAULT 1,
  state      TEXT   NOT NULL,
  generation BIGINT NOT NULL DEFAULT 1,
  open       BIGINT NOT NULL DEFAULT 0,
  first_us   BIGINT NOT NULL DEFAULT 0,
  ended_us   BIGINT NOT NULL DEFAULT 0,
  tries      BIGINT NOT NULL DEFAULT 0,
  fence      BIGINT NOT NULL DEFAULT 0,
  settled_by TEXT   NOT NULL DEFAULT '',
  data       TEXT   NOT NULL DEFAULT '',
  PRIMARY KEY (key, step)
);

CREATE TABLE daybook_triggers (
  key          TEXT /*ascii*/ NOT NULL,
  id           TEXT /*ascii*/ NOT NULL,
  job          TEXT /*ascii*/ NOT NULL,
  source       TEXT   NOT NULL,
  outcome      TEXT   NOT NULL,
  actor        TEXT   NOT NULL DEFAULT '',
  note         TEXT   NOT NULL DEFAULT '',
  fire         TEXT /*ascii*/ NOT NULL DEFAULT '',
  at_us        BIGINT NOT NULL,
  payload_hash TEXT   NOT NULL DEFAULT '',
  PRIMARY KEY (key, id)
);
CREATE UNIQUE INDEX daybook_triggers_fire ON daybook_triggers (job, fire) WHERE fire <> '';

CREATE TABLE daybook_letters (
  id        TEXT /*ascii*/ NOT NULL PRIMARY KEY,
  key       TEXT /*ascii*/ NOT NULL,
  job       TEXT /*ascii*/ NOT NULL,
  priority  TEXT   NOT NULL,
  kind      TEXT   NOT NULL,
  state     TEXT   NOT NULL,
  error     TEXT   NOT NULL,
  opened_us BIGINT NOT NULL,
  closed_us BIGINT NOT NULL DEFAULT 0,
  closed_by TEXT   NOT NULL DEFAULT '',
  note      TEXT   NOT NULL DEFAULT '',
  refused   BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX daybook_letters_open ON daybook_letters (key) WHERE state = 'open';
CREATE INDEX daybook_letters_key ON daybook_letters (key, opened_us);

CREATE TABLE daybook_alerts (
  id         TEXT /*ascii*/ NOT NULL PRIMARY KEY,
  kind       TEXT   NOT NULL,
  key        TEXT /*ascii*/ NOT NULL DEFAULT '',
  job        TEXT /*ascii*/ NOT NULL,
  priority   TEXT   NOT NULL,
  last_error TEXT   NOT NULL DEFAULT '',
  last_good  TEXT   NOT NULL DEFAULT '',
  at_us      BIGINT NOT NULL,
  closed_us  BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX daybook_alerts_open ON daybook_alerts (kind, job, key) WHERE closed_us = 0;
CREATE INDEX daybook_alerts_at ON daybook_alerts (at_us);

CREATE TABLE daybook_spans (
  job        TEXT /*ascii*/ NOT NULL,
  from_us    BIGINT NOT NULL,
  to_us      BIGINT NOT NULL,
  from_label TEXT   NOT NULL,
  to_label   TEXT   NOT NULL,
  windows    BIGINT NOT NULL,
  reason     TEXT   NOT NULL,
  revision   BIGINT NOT NULL,
  decided_us BIGINT NOT NULL,
  PRIMARY KEY (job, to_us, from_us)
);

CREATE TABLE daybook_activity (
  id           TEXT /*ascii*/ NOT NULL PRIMARY KEY,
  at_us        BIGINT NOT NULL,
  actor        TEXT   NOT NULL,
  action       TEXT   NOT NULL,
  key          TEXT   NOT NULL DEFAULT '',
  job          TEXT   NOT NULL DEFAULT '',
  note         TEXT   NOT NULL DEFAULT '',
  state_before TEXT   NOT NULL DEFAULT '',
  state_after  TEXT   NOT NULL DEFAULT ''
);
CREATE INDEX daybook_activity_at ON daybook_activity (at_us);

CREATE TABLE daybook_nodes (
  id         TEXT /*ascii*/ NOT NULL PRIMARY KEY,
  host       TEXT   NOT NULL,
  pid        BIGINT NOT NULL,
  role       TEXT   NOT NULL,
  version    TEXT   NOT NULL,
  tzdata     TEXT   NOT NULL,
  started_us BIGINT NOT NULL,
  seen_us    BIGINT NOT NULL,
  stopped_us BIGINT NOT NULL DEFAULT 0,
  offset_us  BIGINT NOT NULL DEFAULT 0,
  boot_id    TEXT   NOT NULL DEFAULT '',
  boot_us    BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE daybook_holds (
  name     TEXT   NOT NULL PRIMARY KEY,
  since_us BIGINT NOT NULL,
  detail   TEXT   NOT NULL,
  node     TEXT   NOT NULL DEFAULT ''
);
