-- Runs that only letters of their subjects keep from their end are few: they count as good windows.

CREATE INDEX daybook_live_rests ON daybook_live (job) WHERE rests = 1;
