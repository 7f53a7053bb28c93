-- What a node says of itself beside that it lives: how many jobs it plans no more, since another one loaded a newer
-- definition; and whether calls of other nodes come through to it.
ALTER TABLE daybook_nodes ADD COLUMN overtaken BIGINT NOT NULL DEFAULT 0;
ALTER TABLE daybook_nodes ADD COLUMN calls     TEXT   NOT NULL DEFAULT '';
