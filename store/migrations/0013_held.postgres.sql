-- Who has been let go and waits for the serial key of a run outside says so to whoever looks after its parent: others go in
-- its place. What is let go is told apart by what holds it, without reading those that are held.

ALTER TABLE daybook_ends ADD COLUMN held BIGINT NOT NULL DEFAULT 0; -- it has not ended: another run has its serial key

DROP INDEX daybook_live_out;
CREATE INDEX daybook_live_out ON daybook_live (parent, hold, due_us) WHERE parent <> '' AND hold <> 'turn';

-- Rows of these two tables come and go by the thousand while the tables stay small, or hold a million that only wait: a fifth of
-- them dead, the default, is too many to be read past by every claim.
ALTER TABLE daybook_live SET (autovacuum_vacuum_scale_factor = 0.01);
ALTER TABLE daybook_ends SET (autovacuum_vacuum_scale_factor = 0.01);
