-- What an attempt was told of its steps, so that it is not done when it says so all the same.

ALTER TABLE daybook_live ADD COLUMN denied TEXT NOT NULL DEFAULT ''; -- why the current attempt was not let begin one of its steps

ALTER TABLE daybook_steps ADD COLUMN optional BIGINT NOT NULL DEFAULT 0; -- the work does without it when it does not happen
