-- When PostgreSQL removes what is dead of a table and looks how large it has become. Its defaults, a fifth and a tenth of the table, are
-- meant for tables that mostly stay as they are.

-- Rows of these come and go, or change with each attempt. There is room for the changed row beside the old one, and what is dead is
-- removed without pauses: the tables are small, or are so again soon.
ALTER TABLE daybook_live SET (fillfactor = 70, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE daybook_ends SET (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE daybook_locks SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE daybook_fans SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

-- Each fire moves the cursor of its job, in a row that has the whole definition.
ALTER TABLE daybook_jobs SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- These keep history: of ten million rows a fifth would be too much to wait for. Rows that are only inserted are looked at as well, so
-- that they need not be read again to see that everybody may see them.
ALTER TABLE daybook_runs SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE daybook_steps SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE daybook_attempts SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE daybook_triggers SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE daybook_outputs SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);

-- Texts of alerts are emptied some time after they were sent: those that are left to be emptied are found without reading all that ever were.
CREATE INDEX daybook_sends_texts ON daybook_sends (ended_us) WHERE body <> '' AND state <> 'due';
