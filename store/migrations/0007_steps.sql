-- By which call a step was begun: a call that is made again, because its answer was lost, finds the try that it has.

ALTER TABLE daybook_steps ADD COLUMN call TEXT NOT NULL DEFAULT '';
