-- What work records of its own steps. Marks count the writes to the steps of a run: whoever decides from them compares it.

ALTER TABLE daybook_runs ADD COLUMN marks BIGINT NOT NULL DEFAULT 0;
ALTER TABLE daybook_live ADD COLUMN marks BIGINT NOT NULL DEFAULT 0;

ALTER TABLE daybook_steps ADD COLUMN ord          BIGINT NOT NULL DEFAULT 0;
ALTER TABLE daybook_steps ADD COLUMN seen         BIGINT NOT NULL DEFAULT 0; -- fence of the attempt that came to it last
ALTER TABLE daybook_steps ADD COLUMN asks         BIGINT NOT NULL DEFAULT 0;
ALTER TABLE daybook_steps ADD COLUMN undoes       BIGINT NOT NULL DEFAULT 0;
ALTER TABLE daybook_steps ADD COLUMN undo         TEXT   NOT NULL DEFAULT '';
ALTER TABLE daybook_steps ADD COLUMN remembers_us BIGINT NOT NULL DEFAULT 0;
ALTER TABLE daybook_steps ADD COLUMN settles_us   BIGINT NOT NULL DEFAULT 0;
ALTER TABLE daybook_steps ADD COLUMN asked        TEXT   NOT NULL DEFAULT '';
ALTER TABLE daybook_steps ADD COLUMN error        TEXT   NOT NULL DEFAULT '';
