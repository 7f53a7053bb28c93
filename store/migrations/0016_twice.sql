-- An effect that the far side has under two wire keys was done twice: an undo takes back one of them, and names the other.

ALTER TABLE daybook_steps ADD COLUMN twice TEXT NOT NULL DEFAULT ''; -- the other wire keys
