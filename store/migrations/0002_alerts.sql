-- What the sender of alerts keeps: how far each alert was told, each telling on each channel, and mutes.

ALTER TABLE daybook_ledger ADD COLUMN alerts BIGINT NOT NULL DEFAULT 0; -- the last number given to an alert

ALTER TABLE daybook_alerts ADD COLUMN number   BIGINT NOT NULL DEFAULT 0; -- for people: al_1, al_2 …; 0: none yet
ALTER TABLE daybook_alerts ADD COLUMN round    BIGINT NOT NULL DEFAULT 0;
ALTER TABLE daybook_alerts ADD COLUMN next_us  BIGINT NOT NULL DEFAULT 0; -- when it is to be looked at again; 0: it is new
ALTER TABLE daybook_alerts ADD COLUMN told_us  BIGINT NOT NULL DEFAULT 0;
ALTER TABLE daybook_alerts ADD COLUMN repeated BIGINT NOT NULL DEFAULT 0;
ALTER TABLE daybook_alerts ADD COLUMN acked_us BIGINT NOT NULL DEFAULT 0;
ALTER TABLE daybook_alerts ADD COLUMN acked_by TEXT   NOT NULL DEFAULT '';
ALTER TABLE daybook_alerts ADD COLUMN ack_note TEXT   NOT NULL DEFAULT '';
ALTER TABLE daybook_alerts ADD COLUMN finished BIGINT NOT NULL DEFAULT 0; -- nothing more is ever told about it

-- What was over before there was a sender was never told, so its end is not told either.
UPDATE daybook_alerts SET finished = 1 WHERE closed_us > 0;

CREATE UNIQUE INDEX daybook_alerts_number ON daybook_alerts (number) WHERE number > 0;
CREATE INDEX daybook_alerts_unnumbered ON daybook_alerts (at_us, id) WHERE number = 0;
CREATE INDEX daybook_alerts_unfinished ON daybook_alerts (priority, at_us) WHERE finished = 0;

CREATE TABLE daybook_sends (
  key      TEXT /*ascii*/ NOT NULL PRIMARY KEY, -- al_91/phone/1
  alert    TEXT /*ascii*/ NOT NULL,
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
CREATE INDEX daybook_sends_due ON daybook_sends (due_us) WHERE state = 'due';
CREATE INDEX daybook_sends_alert ON daybook_sends (alert);

CREATE TABLE daybook_mutes (
  job      TEXT /*ascii*/ NOT NULL PRIMARY KEY,
  since_us BIGINT NOT NULL,
  until_us BIGINT NOT NULL,
  muted_by TEXT   NOT NULL,
  note     TEXT   NOT NULL
);
