daybook_accepted.job text collate C not null
daybook_accepted.old text not null
daybook_accepted.new text not null
daybook_accepted.at_us bigint not null
daybook_accepted.actor text not null
daybook_accepted.note text not null
CREATE UNIQUE INDEX daybook_accepted_pkey ON public.daybook_accepted USING btree (job, old, new);
daybook_activity.id text collate C not null
daybook_activity.at_us bigint not null
daybook_activity.actor text not null
daybook_activity.action text not null
daybook_activity.key text not null default ''::text
daybook_activity.job text not null default ''::text
daybook_activity.note text not null default ''::text
daybook_activity.state_before text not null default ''::text
daybook_activity.state_after text not null default ''::text
CREATE INDEX daybook_activity_at ON public.daybook_activity USING btree (at_us);
CREATE UNIQUE INDEX daybook_activity_pkey ON public.daybook_activity USING btree (id);
daybook_alerts.id text collate C not null
daybook_alerts.kind text not null
daybook_alerts.key text collate C not null default ''::text
daybook_alerts.job text collate C not null
daybook_alerts.priority text not null
daybook_alerts.last_error text not null default ''::text
daybook_alerts.last_good text not null default ''::text
daybook_alerts.at_us bigint not null
daybook_alerts.closed_us bigint not null default 0
daybook_alerts.number bigint not null default 0
daybook_alerts.round bigint not null default 0
daybook_alerts.next_us bigint not null default 0
daybook_alerts.told_us bigint not null default 0
daybook_alerts.repeated bigint not null default 0
daybook_alerts.acked_us bigint not null default 0
daybook_alerts.acked_by text not null default ''::text
daybook_alerts.ack_note text not null default ''::text
daybook_alerts.finished bigint not null default 0
CREATE INDEX daybook_alerts_at ON public.daybook_alerts USING btree (at_us);
CREATE UNIQUE INDEX daybook_alerts_number ON public.daybook_alerts USING btree (number) WHERE (number > 0);
CREATE UNIQUE INDEX daybook_alerts_open ON public.daybook_alerts USING btree (kind, job, key) WHERE (closed_us = 0);
CREATE UNIQUE INDEX daybook_alerts_pkey ON public.daybook_alerts USING btree (id);
CREATE INDEX daybook_alerts_unfinished ON public.daybook_alerts USING btree (priority, at_us) WHERE (finished = 0);
CREATE INDEX daybook_alerts_unnumbered ON public.daybook_alerts USING btree (at_us, id) WHERE (number = 0);
daybook_attempts.key text collate C not null
daybook_attempts.fence bigint not null
daybook_attempts.question bigint not null default 0
daybook_attempts.number bigint not null
daybook_attempts.claim text not null default ''::text
daybook_attempts.node text not null default ''::text
daybook_attempts.wire_key text not null default ''::text
daybook_attempts.command text not null default ''::text
daybook_attempts.revision bigint not null default 0
daybook_attempts.claimed_us bigint not null default 0
daybook_attempts.begun_us bigint not null default 0
daybook_attempts.ended_us bigint not null default 0
daybook_attempts.result text not null default ''::text
daybook_attempts.error text not null default ''::text
daybook_attempts.detail text not null default ''::text
daybook_attempts.data text not null default ''::text
daybook_attempts.late_result text not null default ''::text
daybook_attempts.late_error text not null default ''::text
daybook_attempts.late_us bigint not null default 0
daybook_attempts.late_taken bigint not null default 0
CREATE UNIQUE INDEX daybook_attempts_pkey ON public.daybook_attempts USING btree (key, fence, question);
daybook_calls.caller text collate C not null
daybook_calls.key text collate C not null
daybook_calls.fingerprint text not null
daybook_calls.status bigint not null default 0
daybook_calls.until_us bigint not null
daybook_calls.at_us bigint not null
daybook_calls.header text not null default ''::text
daybook_calls.body text not null default ''::text
CREATE INDEX daybook_calls_at ON public.daybook_calls USING btree (at_us);
CREATE UNIQUE INDEX daybook_calls_pkey ON public.daybook_calls USING btree (caller, key);
daybook_drills.id text not null
daybook_drills.key text collate C not null
daybook_drills.job text collate C not null
daybook_drills.actor text not null
daybook_drills.at_us bigint not null
daybook_drills.ended_us bigint not null
daybook_drills.doors text not null
daybook_drills.times bigint not null
daybook_drills.knocks text not null
daybook_drills.runs_before bigint not null
daybook_drills.runs_after bigint not null
daybook_drills.attempts_before bigint not null
daybook_drills.attempts_after bigint not null
daybook_drills.effects_before bigint not null
daybook_drills.effects_after bigint not null
daybook_drills.counted bigint not null
daybook_drills.count_before text not null
daybook_drills.count_after text not null
daybook_drills.seen text not null
CREATE INDEX daybook_drills_at ON public.daybook_drills USING btree (at_us);
CREATE INDEX daybook_drills_job ON public.daybook_drills USING btree (job, at_us);
CREATE UNIQUE INDEX daybook_drills_pkey ON public.daybook_drills USING btree (id);
daybook_ends.parent text collate C not null
daybook_ends.id text collate C not null
daybook_ends.key text not null
daybook_ends.done bigint not null default 0
daybook_ends.failed bigint not null default 0
daybook_ends.error text not null default ''::text
daybook_ends.at_us bigint not null
daybook_ends.held bigint not null default 0
CREATE UNIQUE INDEX daybook_ends_pkey ON public.daybook_ends USING btree (parent, id);
daybook_fans.key text collate C not null
daybook_fans.job text collate C not null
daybook_fans.subjects bigint not null default 0
daybook_fans.repeated bigint not null default 0
daybook_fans.faulty bigint not null default 0
daybook_fans.fault text not null default ''::text
daybook_fans.vanished bigint not null default 0
daybook_fans.breaker text not null default ''::text
daybook_fans.look_us bigint not null default 0
daybook_fans.whole bigint not null default 0
CREATE INDEX daybook_fans_look ON public.daybook_fans USING btree (look_us) WHERE (look_us > 0);
CREATE UNIQUE INDEX daybook_fans_pkey ON public.daybook_fans USING btree (key);
daybook_freezes.id text collate C not null
daybook_freezes.name text not null
daybook_freezes.priority text not null default ''::text
daybook_freezes.from_us bigint not null
daybook_freezes.until_us bigint not null
daybook_freezes.actor text not null
daybook_freezes.note text not null
daybook_freezes.ended_us bigint not null default 0
daybook_freezes.ended_by text not null default ''::text
CREATE UNIQUE INDEX daybook_freezes_name ON public.daybook_freezes USING btree (name) WHERE (ended_us = 0);
CREATE UNIQUE INDEX daybook_freezes_pkey ON public.daybook_freezes USING btree (id);
CREATE INDEX daybook_freezes_until ON public.daybook_freezes USING btree (until_us);
daybook_holds.name text not null
daybook_holds.since_us bigint not null
daybook_holds.detail text not null
daybook_holds.node text not null default ''::text
CREATE UNIQUE INDEX daybook_holds_pkey ON public.daybook_holds USING btree (name);
daybook_jobs.name text collate C not null
daybook_jobs.home text not null default ''::text
daybook_jobs.revision bigint not null
daybook_jobs.since_us bigint not null
daybook_jobs.definition text not null
daybook_jobs.cursor_us bigint not null
daybook_jobs.next_us bigint not null default 0
daybook_jobs.next_fire text not null default ''::text
daybook_jobs.first_seen_us bigint not null
daybook_jobs.scanned_us bigint not null default 0
daybook_jobs.paused bigint not null default 0
daybook_jobs.paused_us bigint not null default 0
daybook_jobs.paused_by text not null default ''::text
daybook_jobs.paused_note text not null default ''::text
daybook_jobs.fault text not null default ''::text
daybook_jobs.fault_us bigint not null default 0
daybook_jobs.retired_us bigint not null default 0
daybook_jobs.formerly text not null default ''::text
daybook_jobs.renamed_to text not null default ''::text
CREATE UNIQUE INDEX daybook_jobs_pkey ON public.daybook_jobs USING btree (name);
daybook_lapses.number bigint not null
daybook_lapses.since_us bigint not null
daybook_lapses.found_us bigint not null
daybook_lapses.ended_us bigint not null default 0
daybook_lapses.node text not null default ''::text
daybook_lapses.detail text not null
CREATE UNIQUE INDEX daybook_lapses_pkey ON public.daybook_lapses USING btree (number);
daybook_ledger.id text not null
daybook_ledger.created_us bigint not null
daybook_ledger.sequence bigint not null
daybook_ledger.written_us bigint not null
daybook_ledger.alerts bigint not null default 0
daybook_ledger.secret text not null default ''::text
daybook_ledger.lapse bigint not null default 0
daybook_ledger.copied_us bigint not null default 0
CREATE UNIQUE INDEX daybook_ledger_pkey ON public.daybook_ledger USING btree (id);
daybook_letters.id text collate C not null
daybook_letters.key text collate C not null
daybook_letters.job text collate C not null
daybook_letters.priority text not null
daybook_letters.kind text not null
daybook_letters.state text not null
daybook_letters.error text not null
daybook_letters.opened_us bigint not null
daybook_letters.closed_us bigint not null default 0
daybook_letters.closed_by text not null default ''::text
daybook_letters.note text not null default ''::text
daybook_letters.refused bigint not null default 0
daybook_letters.parent text collate C not null default ''::text
CREATE INDEX daybook_letters_children ON public.daybook_letters USING btree (parent, key) WHERE ((state = 'open'::text) AND (parent <> ''::text));
CREATE INDEX daybook_letters_key ON public.daybook_letters USING btree (key, opened_us);
CREATE UNIQUE INDEX daybook_letters_open ON public.daybook_letters USING btree (key) WHERE (state = 'open'::text);
CREATE UNIQUE INDEX daybook_letters_pkey ON public.daybook_letters USING btree (id);
daybook_live.key text collate C not null
daybook_live.job text collate C not null
daybook_live.state text not null
daybook_live.reason text not null default ''::text
daybook_live.hold text not null default ''::text
daybook_live.due_us bigint not null
daybook_live.priority text not null
daybook_live.lane text not null
daybook_live.home text not null default ''::text
daybook_live.line text not null default ''::text
daybook_live.start_us bigint not null default 0
daybook_live.serial text not null default ''::text
daybook_live.parent text not null default ''::text
daybook_live.fence bigint not null default 0
daybook_live.claim text not null default ''::text
daybook_live.node text not null default ''::text
daybook_live.lease_us bigint not null default 0
daybook_live.asking text not null default ''::text
daybook_live.claimed_us bigint not null default 0
daybook_live.begun_us bigint not null default 0
daybook_live.attempts bigint not null default 0
daybook_live.failures bigint not null default 0
daybook_live.losses bigint not null default 0
daybook_live.again bigint not null default 0
daybook_live.cancelled_by text not null default ''::text
daybook_live.last_error text not null default ''::text
daybook_live.marks bigint not null default 0
daybook_live.rests bigint not null default 0
daybook_live.frozen_us bigint not null default 0
daybook_live.meant_us bigint not null default 0
daybook_live.once bigint not null default 0
daybook_live.denied text not null default ''::text
CREATE INDEX daybook_live_due ON public.daybook_live USING btree (lane, home, priority, due_us) WHERE ((state <> 'running'::text) AND (hold = ''::text) AND (asking = ''::text));
CREATE INDEX daybook_live_frozen ON public.daybook_live USING btree (frozen_us) WHERE (frozen_us > 0);
CREATE INDEX daybook_live_job ON public.daybook_live USING btree (job);
CREATE INDEX daybook_live_lease ON public.daybook_live USING btree (lease_us) WHERE (lease_us > 0);
CREATE INDEX daybook_live_line ON public.daybook_live USING btree (line, start_us) WHERE (line <> ''::text);
CREATE INDEX daybook_live_out ON public.daybook_live USING btree (parent, hold, due_us) WHERE ((parent <> ''::text) AND (hold <> 'turn'::text));
CREATE UNIQUE INDEX daybook_live_overlap ON public.daybook_live USING btree (line) WHERE ((line <> ''::text) AND (state = 'running'::text));
CREATE UNIQUE INDEX daybook_live_pkey ON public.daybook_live USING btree (key);
CREATE INDEX daybook_live_restored ON public.daybook_live USING btree (key) WHERE (hold = 'restored'::text);
CREATE INDEX daybook_live_rests ON public.daybook_live USING btree (job) WHERE (rests = 1);
CREATE INDEX daybook_live_serial ON public.daybook_live USING btree (serial, priority, due_us, key) WHERE (hold = 'waiting for serial key'::text);
CREATE INDEX daybook_live_turn ON public.daybook_live USING btree (parent, key) WHERE (hold = 'turn'::text);
daybook_locks.serial text collate C not null
daybook_locks.key text collate C not null
daybook_locks.since_us bigint not null
CREATE INDEX daybook_locks_key ON public.daybook_locks USING btree (key);
CREATE UNIQUE INDEX daybook_locks_pkey ON public.daybook_locks USING btree (serial);
daybook_migrations.version bigint not null
daybook_migrations.name text not null
daybook_migrations.checksum text not null
daybook_migrations.applied_us bigint not null
CREATE UNIQUE INDEX daybook_migrations_pkey ON public.daybook_migrations USING btree (version);
daybook_mutes.job text collate C not null
daybook_mutes.since_us bigint not null
daybook_mutes.until_us bigint not null
daybook_mutes.muted_by text not null
daybook_mutes.note text not null
CREATE UNIQUE INDEX daybook_mutes_pkey ON public.daybook_mutes USING btree (job);
daybook_nodes.id text collate C not null
daybook_nodes.host text not null
daybook_nodes.pid bigint not null
daybook_nodes.role text not null
daybook_nodes.version text not null
daybook_nodes.tzdata text not null
daybook_nodes.started_us bigint not null
daybook_nodes.seen_us bigint not null
daybook_nodes.stopped_us bigint not null default 0
daybook_nodes.offset_us bigint not null default 0
daybook_nodes.boot_id text not null default ''::text
daybook_nodes.boot_us bigint not null default 0
daybook_nodes.overtaken bigint not null default 0
daybook_nodes.calls text not null default ''::text
daybook_nodes.mark bigint not null default 0
CREATE UNIQUE INDEX daybook_nodes_pkey ON public.daybook_nodes USING btree (id);
daybook_outputs.key text collate C not null
daybook_outputs.fence bigint not null
daybook_outputs.text text not null
daybook_outputs.omitted bigint not null default 0
CREATE UNIQUE INDEX daybook_outputs_pkey ON public.daybook_outputs USING btree (key, fence);
daybook_revisions.job text collate C not null
daybook_revisions.revision bigint not null
daybook_revisions.since_us bigint not null
daybook_revisions.definition text not null
CREATE UNIQUE INDEX daybook_revisions_pkey ON public.daybook_revisions USING btree (job, revision);
daybook_runs.key text collate C not null
daybook_runs.job text collate C not null
daybook_runs.label text not null
daybook_runs.date text not null
daybook_runs.subject text not null default ''::text
daybook_runs.parent text not null default ''::text
daybook_runs.start_us bigint not null
daybook_runs.end_us bigint not null
daybook_runs.cover_start_us bigint not null
daybook_runs.cover_end_us bigint not null
daybook_runs.fire text not null default ''::text
daybook_runs.zone text not null default ''::text
daybook_runs.tzdata text not null default ''::text
daybook_runs.priority text not null
daybook_runs.lane text not null
daybook_runs.home text not null default ''::text
daybook_runs.effects text not null
daybook_runs.work text not null
daybook_runs.steps bigint not null default 0
daybook_runs.line text not null default ''::text
daybook_runs.serial text not null default ''::text
daybook_runs.revision bigint not null default 0
daybook_runs.state text not null
daybook_runs.reason text not null default ''::text
daybook_runs.covered_by text not null default ''::text
daybook_runs.fence bigint not null default 0
daybook_runs.claim text not null default ''::text
daybook_runs.node text not null default ''::text
daybook_runs.attempts bigint not null default 0
daybook_runs.failures bigint not null default 0
daybook_runs.losses bigint not null default 0
daybook_runs.payload text not null default ''::text
daybook_runs.payload_hash text not null default ''::text
daybook_runs.triggers bigint not null default 0
daybook_runs.refused bigint not null default 0
daybook_runs.first_source text not null default ''::text
daybook_runs.first_actor text not null default ''::text
daybook_runs.created_us bigint not null
daybook_runs.not_before_us bigint not null default 0
daybook_runs.started_us bigint not null default 0
daybook_runs.ended_us bigint not null default 0
daybook_runs.last_error text not null default ''::text
daybook_runs.result text not null default ''::text
daybook_runs.result_hash text not null default ''::text
daybook_runs.counts text not null default ''::text
daybook_runs.pruned_us bigint not null default 0
daybook_runs.marks bigint not null default 0
daybook_runs.fans bigint not null default 0
daybook_runs.listed bigint not null default 0
daybook_runs.denied text not null default ''::text
CREATE INDEX daybook_runs_children ON public.daybook_runs USING btree (parent, state) WHERE (parent <> ''::text);
CREATE INDEX daybook_runs_date ON public.daybook_runs USING btree (date) WHERE (parent = ''::text);
CREATE UNIQUE INDEX daybook_runs_pkey ON public.daybook_runs USING btree (key);
CREATE INDEX daybook_runs_unpruned ON public.daybook_runs USING btree (job, ended_us) WHERE ((pruned_us = 0) AND (ended_us > 0));
CREATE INDEX daybook_runs_window ON public.daybook_runs USING btree (job, start_us) WHERE (parent = ''::text);
daybook_sends.key text collate C not null
daybook_sends.alert text collate C not null
daybook_sends.channel text not null
daybook_sends.purpose text not null
daybook_sends.via text not null default ''::text
daybook_sends.lang text not null
daybook_sends.subject text not null
daybook_sends.body text not null
daybook_sends.short text not null
daybook_sends.data text not null default ''::text
daybook_sends.state text not null
daybook_sends.due_us bigint not null
daybook_sends.claim text not null default ''::text
daybook_sends.lease_us bigint not null default 0
daybook_sends.tries bigint not null default 0
daybook_sends.failures bigint not null default 0
daybook_sends.error text not null default ''::text
daybook_sends.made_us bigint not null
daybook_sends.ended_us bigint not null default 0
CREATE INDEX daybook_sends_alert ON public.daybook_sends USING btree (alert);
CREATE INDEX daybook_sends_due ON public.daybook_sends USING btree (due_us) WHERE (state = 'due'::text);
CREATE UNIQUE INDEX daybook_sends_pkey ON public.daybook_sends USING btree (key);
CREATE INDEX daybook_sends_texts ON public.daybook_sends USING btree (ended_us) WHERE ((body <> ''::text) AND (state <> 'due'::text));
daybook_spans.job text collate C not null
daybook_spans.from_us bigint not null
daybook_spans.to_us bigint not null
daybook_spans.from_label text not null
daybook_spans.to_label text not null
daybook_spans.windows bigint not null
daybook_spans.reason text not null
daybook_spans.revision bigint not null
daybook_spans.decided_us bigint not null
CREATE UNIQUE INDEX daybook_spans_pkey ON public.daybook_spans USING btree (job, to_us, from_us);
daybook_steps.key text collate C not null
daybook_steps.step text collate C not null
daybook_steps.effect bigint not null default 1
daybook_steps.state text not null
daybook_steps.generation bigint not null default 1
daybook_steps.open bigint not null default 0
daybook_steps.first_us bigint not null default 0
daybook_steps.ended_us bigint not null default 0
daybook_steps.tries bigint not null default 0
daybook_steps.fence bigint not null default 0
daybook_steps.settled_by text not null default ''::text
daybook_steps.data text not null default ''::text
daybook_steps.ord bigint not null default 0
daybook_steps.seen bigint not null default 0
daybook_steps.asks bigint not null default 0
daybook_steps.undoes bigint not null default 0
daybook_steps.undo text not null default ''::text
daybook_steps.remembers_us bigint not null default 0
daybook_steps.settles_us bigint not null default 0
daybook_steps.asked text not null default ''::text
daybook_steps.error text not null default ''::text
daybook_steps.call text not null default ''::text
daybook_steps.doubt bigint not null default 0
daybook_steps.optional bigint not null default 0
daybook_steps.twice text not null default ''::text
CREATE UNIQUE INDEX daybook_steps_pkey ON public.daybook_steps USING btree (key, step);
daybook_tokens.number bigint not null
daybook_tokens.name text not null
daybook_tokens.role text not null
daybook_tokens.hash text collate C not null
daybook_tokens.made_us bigint not null
daybook_tokens.made_by text not null
daybook_tokens.revoked_us bigint not null default 0
daybook_tokens.revoked_by text not null default ''::text
CREATE UNIQUE INDEX daybook_tokens_hash ON public.daybook_tokens USING btree (hash);
CREATE UNIQUE INDEX daybook_tokens_pkey ON public.daybook_tokens USING btree (number);
daybook_triggers.key text collate C not null
daybook_triggers.id text collate C not null
daybook_triggers.job text collate C not null
daybook_triggers.source text not null
daybook_triggers.outcome text not null
daybook_triggers.actor text not null default ''::text
daybook_triggers.note text not null default ''::text
daybook_triggers.fire text collate C not null default ''::text
daybook_triggers.at_us bigint not null
daybook_triggers.payload_hash text not null default ''::text
CREATE UNIQUE INDEX daybook_triggers_fire ON public.daybook_triggers USING btree (job, fire) WHERE (fire <> ''::text);
CREATE UNIQUE INDEX daybook_triggers_pkey ON public.daybook_triggers USING btree (key, id);
