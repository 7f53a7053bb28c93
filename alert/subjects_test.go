package alert

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/internal/lang"
	"github.com/daybook-run/daybook/internal/notice"
)

// TestSubjectsShareAnAlert: one is told as its own, several by their names, and more than twenty by a number.
func TestSubjectsShareAnAlert(t *testing.T) {
	at := time.Date(2026, 3, 29, 1, 0, 37, 0, time.UTC)
	const parent = "renew:2026-03-29"
	under := 0 // way
	told := func(n int, l string) Text {
		f := Facts{Run: &daybook.Run{Key: parent, Job: "renew", Fans: true, Attempts: 1, State: daybook.Running, Zone: "Europe/Berlin", Effects: daybook.Once}, Purpose: notice.First, Round: 1, Now: at,
			Counts: &daybook.SubjectCounts{Of: 100, Letters: int64(n), States: map[daybook.State]int64{daybook.Done: int64(100 - n - under), daybook.Scheduled: int64(under)}}}
		for i := range min(n, listedSubjects) {
			f.Subjects = append(f.Subjects, daybook.Key(fmt.Sprintf("%s/sub_%02d", parent, i+13)))
		}
		if n == 1 {
			f.Run = &daybook.Run{Key: f.Subjects[0], Job: "renew", Attempts: 1, State: daybook.Dead, Zone: "Europe/Berlin", Effects: daybook.Once,
				Effect: &daybook.StepRecord{Key: f.Subjects[0], Step: daybook.StepRun, State: daybook.EffectRefused, Generation: 1}}
		}
		a := daybook.NewAlert(daybook.AlertDeadLetter, parent, "renew", daybook.P0, "402 card_declined", "", at)
		return Write(lang.For(l), notice.Row{Alert: *a, Number: 91}, f)
	}
	for _, c := range []struct {
		n    int
		want []string
		not  string
	}{
		{1, []string{"[P0] renew:2026-03-29/sub_13 ", "Run: 99 of 100 subjects done, 1 dead, 0 unknown", "daybook dead replay renew:2026-03-29/sub_13 ", "#run@2",
			"Subjects:  sub_13: 1 of 100; all stand in   daybook key show renew:2026-03-29\n"}, "more"},
		{3, []string{"[P0] renew:2026-03-29 ", "Subjects: ", "sub_13, sub_14, sub_15\n", "daybook dead replay renew:2026-03-29 "}, "more"},
		{25, []string{"sub_32 and 5 more\n", "75 of 100"}, "sub_33"},
	} {
		text := told(c.n, lang.English)
		for _, w := range c.want {
			if !strings.Contains(text.Body, w) {
				t.Errorf("%d: no %q in\n%s", c.n, w, text.Body)
			}
		}
		if strings.Contains(text.Body, c.not) {
			t.Errorf("%d: %q in\n%s", c.n, c.not, text.Body)
		}
	}
	// While others are under way, it is the first of who knows how many: they are not told one by one, so where they stand is.
	under = 80
	for l, want := range map[string]string{lang.English: "Subjects:  sub_13: 1 of 100 so far; those that follow stand in   daybook key show renew:2026-03-29\n",
		lang.Chinese: "业务对象：sub_13：目前是 100 个中的 1 个；之后的都在  daybook key show renew:2026-03-29\n"} {
		if text := told(1, l); !strings.Contains(text.Body, want) {
			t.Errorf("no %q in\n%s", want, text.Body)
		}
	}
	under = 0
	if text := told(3, lang.Chinese); !strings.Contains(text.Body, "业务对象：sub_13") {
		t.Error(text.Body)
	}
}
