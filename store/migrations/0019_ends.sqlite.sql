-- What changes at the end of a run stands in no index: then its end writes none.
DROP INDEX daybook_runs_unpruned;
CREATE INDEX daybook_runs_unpruned ON daybook_runs (job, created_us) WHERE pruned_us = 0;
DROP INDEX daybook_runs_children;
CREATE INDEX daybook_runs_children ON daybook_runs (parent) WHERE parent <> '';
