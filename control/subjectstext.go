package control

import (
	"github.com/daybook-run/daybook"
)

// SubjectsText says how the subjects of a run stand; zero where they were not counted.
func SubjectsText(r *daybook.Run) daybook.Text {
	if r.Subjects == nil {
		return daybook.Text{}
	}
	return subjectsText(r.Subjects)
}

// subjectsText says how the subjects of a run stand: "1 open letter, 19 done, 0 unknown of 20 subjects".
func subjectsText(n *daybook.SubjectCounts) daybook.Text {
	if n == nil {
		n = &daybook.SubjectCounts{}
	}
	letters := daybook.Say("%d open letters", n.Letters)
	switch n.Letters {
	case 0:
		letters = daybook.Text{}
	case 1:
		letters = daybook.Say("1 open letter")
	}
	said := daybook.Say("%d done, %d unknown of %d subjects", n.States[daybook.Done], n.Unknown, n.Of)
	if n.Letters > 0 {
		said = daybook.Say("%s, %s", letters, said)
	}
	if n.Breaker != nil {
		said = daybook.Say("%s; they fail alike (%s), so one is tried at a time", said, daybook.Clip(oneLine(n.Breaker.Error), 120))
	}
	return said
}

// subjectsReplayed says which letters of subjects were replayed with a run, and which were not.
func (a Answer) subjectsReplayed() daybook.Text {
	said := daybook.Say("started again: the %d subjects whose letters were open, each under the same key.", a.Replayed)
	if a.Replayed == 1 {
		said = daybook.Say("started again: the subject whose letter was open, under the same key.")
	}
	if a.Subjects == nil || a.Subjects.Unknown == 0 {
		return said
	}
	return daybook.Join(said, daybook.Say("Of %d it is unknown whether they happened: they are settled first, by daybook run resolve.", a.Subjects.Unknown))
}
