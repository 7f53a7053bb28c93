CREATE TABLE daybook_accepted (
  job    TEXT  NOT NULL,
  old    TEXT   NOT NULL,
  new    TEXT   NOT NULL,
  at_us  BIGINT NOT NULL,
  actor  TEXT   NOT NULL,
  note   TEXT   NOT NULL,
  PRIMARY KEY (job, old, new)
);
CREATE TABLE daybook_activity (
  id           TEXT  NOT NULL PRIMARY KEY,
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
CREATE TABLE daybook_alerts (
  id         TEXT  NOT NULL PRIMARY KEY,
  kind       TEXT   NOT NULL,
  key        TEXT  NOT NULL DEFAULT '',
  job        TEXT  NOT NULL,
  priority   TEXT   NOT NULL,
  last_error TEXT   NOT NULL DEFAULT '',
  last_good  TEXT   NOT NULL DEFAULT '',
  at_us      BIGINT NOT NULL,
  closed_us  BIGINT NOT NULL DEFAULT 0
, number   BIGINT NOT NULL DEFAULT 0, round    BIGINT NOT NULL DEFAULT 0, next_us  BIGINT NOT NULL DEFAULT 0, told_us  BIGINT NOT NULL DEFAULT 0, repeated BIGINT NOT NULL DEFAULT 0, acked_us BIGINT NOT NULL DEFAULT 0, acked_by TEXT   NOT NULL DEFAULT '', ack_note TEXT   NOT NULL DEFAULT '', finished BIGINT NOT NULL DEFAULT 0);
CREATE INDEX daybook_alerts_at ON daybook_alerts (at_us);
CREATE UNIQUE INDEX daybook_alerts_number ON daybook_alerts (number) WHERE number > 0;
CREATE UNIQUE INDEX daybook_alerts_open ON daybook_alerts (kind, job, key) WHERE closed_us = 0;
CREATE INDEX daybook_alerts_unfinished ON daybook_alerts (priority, at_us) WHERE finished = 0;
CREATE INDEX daybook_alerts_unnumbered ON daybook_alerts (at_us, id) WHERE number = 0;
CREATE TABLE daybook_attempts (
  key         TEXT  NOT NULL,
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
CREATE TABLE daybook_calls (
  caller      TEXT  NOT NULL, -- the token that was used
  key         TEXT  NOT NULL, -- as the header brought it
  fingerprint TEXT   NOT NULL,
  status      BIGINT NOT NULL DEFAULT 0, -- 0: under way, until then
  until_us    BIGINT NOT NULL,
  at_us       BIGINT NOT NULL,
  header      TEXT   NOT NULL DEFAULT '',
  body        TEXT   NOT NULL DEFAULT '',
  PRIMARY KEY (caller, key)
);
CREATE INDEX daybook_calls_at ON daybook_calls (at_us);
CREATE TABLE daybook_drills (
  id              TEXT   NOT NULL PRIMARY KEY,
  key             TEXT  NOT NULL,
  job             TEXT  NOT NULL,
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
CREATE INDEX daybook_drills_at ON daybook_drills (at_us);
CREATE INDEX daybook_drills_job ON daybook_drills (job, at_us);
CREATE TABLE daybook_ends (
  parent TEXT  NOT NULL,
  id     TEXT  NOT NULL,
  key    TEXT   NOT NULL,
  done   BIGINT NOT NULL DEFAULT 0,
  failed BIGINT NOT NULL DEFAULT 0,
  error  TEXT   NOT NULL DEFAULT '',
  at_us  BIGINT NOT NULL, held BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (parent, id)
) WITHOUT ROWID;
CREATE TABLE daybook_fans (
  key      TEXT  NOT NULL PRIMARY KEY,
  job      TEXT  NOT NULL,
  subjects BIGINT NOT NULL DEFAULT 0,
  repeated BIGINT NOT NULL DEFAULT 0,
  faulty   BIGINT NOT NULL DEFAULT 0,
  fault    TEXT   NOT NULL DEFAULT '', -- the first of the rows that name no subject
  vanished BIGINT NOT NULL DEFAULT 0,
  breaker  TEXT   NOT NULL DEFAULT '',
  look_us  BIGINT NOT NULL DEFAULT 0 -- when it is looked at, whatever ends; 0: when something ends
, whole BIGINT NOT NULL DEFAULT 0);
CREATE INDEX daybook_fans_look ON daybook_fans (look_us) WHERE look_us > 0;
CREATE TABLE daybook_freezes (
  id       TEXT  NOT NULL PRIMARY KEY,
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
CREATE TABLE daybook_holds (
  name     TEXT   NOT NULL PRIMARY KEY,
  since_us BIGINT NOT NULL,
  detail   TEXT   NOT NULL,
  node     TEXT   NOT NULL DEFAULT ''
);
CREATE TABLE daybook_jobs (
  name          TEXT  NOT NULL PRIMARY KEY,
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
, formerly   TEXT NOT NULL DEFAULT '', renamed_to TEXT NOT NULL DEFAULT '');
CREATE TABLE daybook_lapses (
  number   BIGINT NOT NULL PRIMARY KEY,
  since_us BIGINT NOT NULL,
  found_us BIGINT NOT NULL,
  ended_us BIGINT NOT NULL DEFAULT 0, -- 0: its freeze stands
  node     TEXT   NOT NULL DEFAULT '',
  detail   TEXT   NOT NULL
);
CREATE TABLE daybook_ledger (
  id          TEXT   NOT NULL PRIMARY KEY,
  created_us  BIGINT NOT NULL,
  sequence    BIGINT NOT NULL,
  written_us  BIGINT NOT NULL
, alerts BIGINT NOT NULL DEFAULT 0, secret TEXT NOT NULL DEFAULT '', lapse     BIGINT NOT NULL DEFAULT 0, copied_us BIGINT NOT NULL DEFAULT 0);
CREATE TABLE daybook_letters (
  id        TEXT  NOT NULL PRIMARY KEY,
  key       TEXT  NOT NULL,
  job       TEXT  NOT NULL,
  priority  TEXT   NOT NULL,
  kind      TEXT   NOT NULL,
  state     TEXT   NOT NULL,
  error     TEXT   NOT NULL,
  opened_us BIGINT NOT NULL,
  closed_us BIGINT NOT NULL DEFAULT 0,
  closed_by TEXT   NOT NULL DEFAULT '',
  note      TEXT   NOT NULL DEFAULT '',
  refused   BIGINT NOT NULL DEFAULT 0
, parent TEXT  NOT NULL DEFAULT '');
CREATE INDEX daybook_letters_children ON daybook_letters (parent, key) WHERE state = 'open' AND parent <> '';
CREATE INDEX daybook_letters_key ON daybook_letters (key, opened_us);
CREATE UNIQUE INDEX daybook_letters_open ON daybook_letters (key) WHERE state = 'open';
CREATE TABLE daybook_live (
  key          TEXT  NOT NULL PRIMARY KEY,
  job          TEXT  NOT NULL,
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
, marks BIGINT NOT NULL DEFAULT 0, rests  BIGINT NOT NULL DEFAULT 0, frozen_us BIGINT NOT NULL DEFAULT 0, meant_us  BIGINT NOT NULL DEFAULT 0, once BIGINT NOT NULL DEFAULT 0, denied TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
CREATE INDEX daybook_live_due ON daybook_live (lane, home, priority, due_us) WHERE state <> 'running' AND hold = '' AND asking = '';
CREATE INDEX daybook_live_frozen ON daybook_live (frozen_us) WHERE frozen_us > 0;
CREATE INDEX daybook_live_job ON daybook_live (job);
CREATE INDEX daybook_live_lease ON daybook_live (lease_us) WHERE lease_us > 0;
CREATE INDEX daybook_live_line ON daybook_live (line, start_us) WHERE line <> '';
CREATE INDEX daybook_live_out ON daybook_live (parent, hold, due_us) WHERE parent <> '' AND hold <> 'turn';
CREATE UNIQUE INDEX daybook_live_overlap ON daybook_live (line) WHERE line <> '' AND state = 'running';
CREATE INDEX daybook_live_restored ON daybook_live (key) WHERE hold = 'restored';
CREATE INDEX daybook_live_rests ON daybook_live (job) WHERE rests = 1;
CREATE INDEX daybook_live_serial ON daybook_live (serial, priority, due_us, key) WHERE hold = 'waiting for serial key';
CREATE INDEX daybook_live_turn ON daybook_live (parent, key) WHERE hold = 'turn';
CREATE TABLE daybook_locks (
  serial   TEXT  NOT NULL PRIMARY KEY,
  key      TEXT  NOT NULL, -- of the run that has it
  since_us BIGINT NOT NULL
);
CREATE INDEX daybook_locks_key ON daybook_locks (key);
CREATE TABLE daybook_migrations (
  version    BIGINT NOT NULL PRIMARY KEY,
  name       TEXT   NOT NULL,
  checksum   TEXT   NOT NULL,
  applied_us BIGINT NOT NULL
);
CREATE TABLE daybook_mutes (
  job      TEXT  NOT NULL PRIMARY KEY,
  since_us BIGINT NOT NULL,
  until_us BIGINT NOT NULL,
  muted_by TEXT   NOT NULL,
  note     TEXT   NOT NULL
);
CREATE TABLE daybook_nodes (
  id         TEXT  NOT NULL PRIMARY KEY,
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
, overtaken BIGINT NOT NULL DEFAULT 0, calls     TEXT   NOT NULL DEFAULT '', mark BIGINT NOT NULL DEFAULT 0);
CREATE TABLE daybook_outputs (
  key     TEXT  NOT NULL,
  fence   BIGINT NOT NULL,
  text    TEXT   NOT NULL,
  omitted BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (key, fence)
);
CREATE TABLE daybook_revisions (
  job        TEXT  NOT NULL,
  revision   BIGINT NOT NULL,
  since_us   BIGINT NOT NULL,
  definition TEXT   NOT NULL,
  PRIMARY KEY (job, revision)
);
CREATE TABLE daybook_runs (
  key            TEXT  NOT NULL PRIMARY KEY,
  job            TEXT  NOT NULL,
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
, marks BIGINT NOT NULL DEFAULT 0, fans   BIGINT NOT NULL DEFAULT 0, listed BIGINT NOT NULL DEFAULT 0, denied TEXT NOT NULL DEFAULT '');
CREATE INDEX daybook_runs_children ON daybook_runs (parent, state) WHERE parent <> '';
CREATE INDEX daybook_runs_date ON daybook_runs (date) WHERE parent = '';
CREATE INDEX daybook_runs_unpruned ON daybook_runs (job, ended_us) WHERE pruned_us = 0 AND ended_us > 0;
CREATE INDEX daybook_runs_window ON daybook_runs (job, start_us) WHERE parent = '';
CREATE TABLE daybook_sends (
  key      TEXT  NOT NULL PRIMARY KEY, -- al_91/phone/1
  alert    TEXT  NOT NULL,
  channel  TEXT   NOT NULL,
  purpose  TEXT   NOT NULL,
  via      TEXT   NOT NULL DEFAULT '',
  lang     TEXT   NOT NULL,
  subject  TEXT   NOT NULL,
  body     TEXT   NOT NULL,
  short    TEXT   NOT NULL,
  data     TEXT   NOT NULL DEFAULT '',
  state    TEXT   NOT NULL,
  due_us   BIGINT NOT NULL,
  claim    TEXT   NOT NULL DEFAULT '',
  lease_us BIGINT NOT NULL DEFAULT 0,
  tries    BIGINT NOT NULL DEFAULT 0,
  failures BIGINT NOT NULL DEFAULT 0,
  error    TEXT   NOT NULL DEFAULT '',
  made_us  BIGINT NOT NULL,
  ended_us BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX daybook_sends_alert ON daybook_sends (alert);
CREATE INDEX daybook_sends_due ON daybook_sends (due_us) WHERE state = 'due';
CREATE INDEX daybook_sends_texts ON daybook_sends (ended_us) WHERE body <> '' AND state <> 'due';
CREATE TABLE daybook_spans (
  job        TEXT  NOT NULL,
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
CREATE TABLE daybook_steps (
  key        TEXT  NOT NULL,
  step       TEXT  NOT NULL,
  effect     BIGINT NOT NULL DEFAULT 1,
  state      TEXT   NOT NULL,
  generation BIGINT NOT NULL DEFAULT 1,
  open       BIGINT NOT NULL DEFAULT 0,
  first_us   BIGINT NOT NULL DEFAULT 0,
  ended_us   BIGINT NOT NULL DEFAULT 0,
  tries      BIGINT NOT NULL DEFAULT 0,
  fence      BIGINT NOT NULL DEFAULT 0,
  settled_by TEXT   NOT NULL DEFAULT '',
  data       TEXT   NOT NULL DEFAULT '', ord          BIGINT NOT NULL DEFAULT 0, seen         BIGINT NOT NULL DEFAULT 0, asks         BIGINT NOT NULL DEFAULT 0, undoes       BIGINT NOT NULL DEFAULT 0, undo         TEXT   NOT NULL DEFAULT '', remembers_us BIGINT NOT NULL DEFAULT 0, settles_us   BIGINT NOT NULL DEFAULT 0, asked        TEXT   NOT NULL DEFAULT '', error        TEXT   NOT NULL DEFAULT '', call TEXT NOT NULL DEFAULT '', doubt BIGINT NOT NULL DEFAULT 0, optional BIGINT NOT NULL DEFAULT 0, twice TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (key, step)
);
CREATE TABLE daybook_tokens (
  number     BIGINT NOT NULL PRIMARY KEY, -- for people: tk_1, tk_2 …
  name       TEXT   NOT NULL,
  role       TEXT   NOT NULL,
  hash       TEXT  NOT NULL, -- of the token, which is kept nowhere
  made_us    BIGINT NOT NULL,
  made_by    TEXT   NOT NULL,
  revoked_us BIGINT NOT NULL DEFAULT 0,
  revoked_by TEXT   NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX daybook_tokens_hash ON daybook_tokens (hash);
CREATE TABLE daybook_triggers (
  key          TEXT  NOT NULL,
  id           TEXT  NOT NULL,
  job          TEXT  NOT NULL,
  source       TEXT   NOT NULL,
  outcome      TEXT   NOT NULL,
  actor        TEXT   NOT NULL DEFAULT '',
  note         TEXT   NOT NULL DEFAULT '',
  fire         TEXT  NOT NULL DEFAULT '',
  at_us        BIGINT NOT NULL,
  payload_hash TEXT   NOT NULL DEFAULT '',
  PRIMARY KEY (key, id)
);
CREATE UNIQUE INDEX daybook_triggers_fire ON daybook_triggers (job, fire) WHERE fire <> '';
