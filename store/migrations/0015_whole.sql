-- Whoever was named by a whole listing does not wait while the run is listed again. How often a run was looked at was never read.

ALTER TABLE daybook_fans ADD COLUMN whole BIGINT NOT NULL DEFAULT 0; -- a listing of it has come to its end
UPDATE daybook_fans SET whole = 1 WHERE subjects > 0;
ALTER TABLE daybook_fans DROP COLUMN looks;
