package control

import "github.com/daybook-run/daybook"

// Line is Text in English.
func (a Acted) Line() string { return a.Text().String() }

// Text says in one sentence, or a few, what became of an act. It begins with the key.
func (a Acted) Text() daybook.Text {
	held, nobody, once := daybook.Text{}, daybook.Text{}, daybook.Text{}
	if a.Run.Hold != "" {
		held = heldText(a.Run, a.At)
	}
	if a.NobodyExecutes {
		nobody = nobodyExecutes(a.Run)
	}
	if a.forOnce() {
		once = onceOnly(a.ByLine)
	}
	return daybook.Say("%s  %s", a.Key, daybook.Join(a.sentence(), held, nobody, once))
}

func (a Acted) sentence() daybook.Text {
	switch {
	case a.AskedBefore != "" && a.Run.FannedOut():
		return daybook.Say("was asked to end by %s already: of its subjects none starts any more, and those that have go on to their end.", a.AskedBefore)
	case a.AskedBefore != "":
		return daybook.Say("was asked to end by %s already: its executor ends it.", a.AskedBefore)
	case a.Asked && a.Run.FannedOut():
		return daybook.Join(daybook.Say("is asked to end: those of its subjects that have not started are cancelled, those that have go on to their end."), a.subjects())
	case a.Asked:
		return daybook.Say("is running: its executor was asked to end it. If it has begun an effect, whether that happened is settled first.")
	case a.Act == "undo":
		return daybook.Say("is being undone, by %s: nothing of it runs again.", a.Key.Undo())
	case a.Act == "dismiss":
		return daybook.Say("dismissed.")
	case a.Act == "cancel" && a.Run.State == daybook.Done:
		return daybook.Say("the further attempt was cancelled; it stays done.")
	case a.Act == "cancel" && a.Run.State == daybook.Dead:
		return daybook.Say("ended, and a dead letter now, since an effect had happened: replay it, undo it, or dismiss it.")
	case a.Act == "cancel" && a.Run.Fans:
		return daybook.Join(daybook.Say("cancelled, with those of its subjects that have not started. Those that have go on to their end."), a.subjects())
	case a.Act == "cancel":
		return daybook.Say("cancelled.")
	case a.Act == "reopen" && a.Run.State == daybook.Dead:
		return daybook.Say("its letter is open again.")
	case a.Act == "reopen":
		return daybook.Say("scheduled again.")
	case a.Act == "resolve" && a.Said.Kept:
		return daybook.Join(a.resolved(), daybook.Say("Its result is kept for what goes on with it, and for an undo."))
	case a.Act == "resolve":
		return a.resolved()
	}
	return daybook.Say("%s.", a.Run.State)
}

// subjects says how the subjects of the run stand, as far as they were counted.
func (a Acted) subjects() daybook.Text {
	if a.Run.Subjects == nil {
		return daybook.Text{}
	}
	return daybook.Say("So far: %s.", subjectsOfText(a.Run, a.Run.Subjects))
}

// WouldEnd says what asking for the end of a run that is under way would do.
func WouldEnd(r *daybook.Run) daybook.Text {
	if r.FannedOut() {
		return daybook.Say("%s  is under way: those of its subjects that have not started would be cancelled, those that have would go on to their end", r.Key)
	}
	return daybook.Say("%s  is running: its executor would be asked to end it", r.Key)
}

// resolved says what became of an effect by the word of a person. It is chosen by that word, never by where the run stands: by
// now that may have moved on.
func (a Acted) resolved() daybook.Text {
	s, what := a.Said, daybook.Say("effect %s", a.Said.Step)
	if a.Key.IsUndo() {
		what = daybook.Say("the undo of %s", a.Said.Step)
	}
	due := s.Due
	if a.Run.HeldAt(a.At) == daybook.ReasonFrozen {
		due = a.Run.Due
	}
	at := clock(due, a.At, location(a.Run.Zone))
	switch {
	case s.Whole && s.As == daybook.AsDone:
		return daybook.Say("done, as you said: its effect is never begun again.")
	case s.Whole && s.As == daybook.AsNotDone:
		return daybook.Say("not done, as you said: tried again at %s, with the next wire key.", at)
	case s.Whole:
		return daybook.Say("the far side is asked again.")
	case s.As == daybook.AsDone && len(s.Left) > 0:
		return daybook.Say("%s is done, as you said, and is never begun again. Still unknown: %s. The run goes on once that is settled too.", what, daybook.Words(s.Left))
	case s.As == daybook.AsDone:
		return daybook.Say("%s is done, as you said, and is never begun again. The run goes on with what is left, at %s.", what, at)
	case s.As == daybook.AsNotDone && len(s.Left) > 0:
		return daybook.Say("%s is not done, as you said: it is begun again, with the next wire key. Still unknown: %s. The run goes on once that is settled too.", what, daybook.Words(s.Left))
	case s.As == daybook.AsNotDone:
		return daybook.Say("%s is not done, as you said. The run goes on at %s, and begins it again, with the next wire key.", what, at)
	case s.Asks == daybook.ReasonUnsettled:
		return daybook.Say("%s is unknown still. The run goes on at %s, and asks the far side when it comes to it.", what, at)
	}
	return daybook.Say("the far side is asked again about %s.", what)
}

// forOnce reports whether only `daybook once` runs what the act left to be run.
func (a Acted) forOnce() bool {
	return a.Run.State.Live() && doneBy(a.Run) == daybook.HomeOnce && !a.Asked
}

// Next is Do in English.
func (a Acted) Next() string { return a.Do().String() }

// Do is the command that a person is likely to want after the act.
func (a Acted) Do() daybook.Text {
	switch {
	case a.forOnce():
		return onceCommand(a.ByLine, a.Run)
	case a.NobodyExecutes:
		return executor(a.Run)
	case a.Run.State.Live():
		return command("daybook run watch %s", a.Run.Key)
	case a.Run.State == daybook.Dead && a.Run.Letter != nil && a.Run.Letter.State == daybook.LetterOpen:
		return command("daybook dead show %s", a.Key)
	}
	return command("daybook key show %s", a.Key)
}

// Line is Text in English.
func (p PauseChange) Line() string { return p.Text().String() }

// Text says in one sentence what became of a pause or a resume.
func (p PauseChange) Text() daybook.Text {
	name := p.Job.Name
	switch {
	case p.Job.Paused && p.Changed:
		return daybook.Say("job %s is paused: nothing new starts, and windows that become due are skipped: paused.", name)
	case p.Job.Paused:
		return daybook.Say("job %s was paused already at %s by %s. Nothing changed.", name, longClock(p.Job.PausedAt, zoneOf(p.Job)), whoever(p.Job.PausedBy))
	case p.Changed:
		return daybook.Say("job %s is resumed: what was held may start.", name)
	}
	return daybook.Say("job %s was not paused. Nothing changed.", name)
}

// Next is the command that a person is likely to want after it.
func (p PauseChange) Next() string {
	if p.Job.Paused {
		return "daybook job resume " + p.Job.Name
	}
	return "daybook job next " + p.Job.Name
}
