-- Texts of alerts are emptied some time after they were sent: those that are left to be emptied are found without reading all that ever were.
CREATE INDEX daybook_sends_texts ON daybook_sends (ended_us) WHERE body <> '' AND state <> 'due';
