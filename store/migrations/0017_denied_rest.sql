-- What an attempt was told of its steps is known also when its run is dead, and it reports late.

ALTER TABLE daybook_runs ADD COLUMN denied TEXT NOT NULL DEFAULT ''; -- why the last attempt was not let begin one of its steps
