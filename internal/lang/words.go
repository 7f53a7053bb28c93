package lang

import "github.com/daybook-run/daybook"

// State is the word for a state of a run.
func (p Printer) State(s daybook.State) string { return p.word("state.", string(s)) }

// Reason is the word for a reason. The covering key completes ReasonCovered and is not used by the others.
func (p Printer) Reason(r daybook.Reason, covering daybook.Key) string {
	return p.word("reason.", string(r), "key", covering)
}

// Outcome is the word for what a trigger was answered.
func (p Printer) Outcome(o daybook.TriggerOutcome) string { return p.word("outcome.", string(o)) }

// Source is the word for the door by which a key was asked for.
func (p Printer) Source(s daybook.Source) string { return p.word("source.", string(s)) }

// Letter is the word for how a dead letter stands.
func (p Printer) Letter(s daybook.LetterState) string { return p.word("letter.", string(s)) }

// LetterKind is the word for what a dead letter wants.
func (p Printer) LetterKind(k daybook.LetterKind) string { return p.word("letter kind.", string(k)) }

// Alert is the words for a kind of alert, as they stand in a subject.
func (p Printer) Alert(k daybook.AlertKind) string { return p.word("kind.", string(k)) }

// Word translates a word of the glossary (job, wire key, dead letter), in the form in which it names one.
func (p Printer) Word(english string) string { return p.word("word.", english) }

// Page is the title of a page: today, calendar, jobs, run, key, money, dead, outbox, heartbeats, backfills, drills,
// activity, settings.
func (p Printer) Page(name string) string { return p.word("page.", name) }

// Question is one of the two questions of an owner, ran or money.
func (p Printer) Question(name string) string { return p.word("question.", name) }

// Verdict is the answer to a question: yes, no, not known yet.
func (p Printer) Verdict(answer string) string { return p.word("verdict.", answer) }

// Need is one sentence that explains a verdict: you, letters, unknown, differences, late, silent, nobody, no jobs, no
// reconcile, held. Those that count take n.
func (p Printer) Need(name string, args ...any) string { return p.word("need.", name, args...) }

// word is the text of a machine word; one that the catalogue does not know stands for itself.
func (p Printer) word(prefix, name string, args ...any) string {
	if !p.Has(prefix + name) {
		return name
	}
	return p.T(prefix+name, args...)
}
