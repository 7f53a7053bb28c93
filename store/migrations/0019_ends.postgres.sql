-- What changes at the end of a run stands in no index, and there is room for the changed row beside the old one: then its end writes no
-- index. Who ends a thousand changes all rows of a page at once, so there is as much room as there are rows.
DROP INDEX daybook_runs_unpruned;
CREATE INDEX daybook_runs_unpruned ON daybook_runs (job, created_us) WHERE pruned_us = 0;
DROP INDEX daybook_runs_children;
CREATE INDEX daybook_runs_children ON daybook_runs (parent) WHERE parent <> '';
ALTER TABLE daybook_runs SET (fillfactor = 50);
