package calendar

import (
	"testing"

	"github.com/daybook-run/daybook"
)

func TestWhatPeopleSayIsAnsweredWithAForm(t *testing.T) {
	for said, want := range map[string]string{
		"02:00": "daily 02:00", "2:30": "daily 02:30", "daily 2am": "daily 02:00", "every day at 2": "daily 02:00", "at 14:05": "daily 14:05", "12am": "daily 00:00", "12 pm": "daily 12:00",
		"every monday 09:00": "weekly mon 09:00", "Fridays at 6pm": "weekly fri 18:00", "sunday 9": "weekly sun 09:00",
		"weekdays 09:00": "0 9 * * 1-5", "every workday at 9:30": "30 9 * * 1-5", "mon-fri 8:00": "0 8 * * 1-5",
		"every 5 minutes": "every 5m", "every hour": "every 1h", "each 30 seconds": "every 30s",
	} {
		_, err := Compile(Spec{Schedule: said, Zone: "UTC"})
		if hint := daybook.HintOf(err); hint != "write "+want {
			t.Errorf("%q: %v → %q, want %q", said, err, hint, "write "+want)
		}
		if _, err := Compile(Spec{Schedule: want, Zone: "UTC"}); err != nil {
			t.Errorf("%q is answered with %q: %v", said, want, err)
		}
	}
	for _, said := range []string{"5", "13pm", "daily 25:00", "every day", "every 0m", "never", "0 2 * *"} {
		if form := meant(said); form != "" {
			t.Errorf("%q is taken for %q", said, form)
		}
	}
	for said, want := range map[string]string{"UTC+8": "", "GMT-02:30": "", "+0200": "", "Asia/Beijing": "Asia/Shanghai", "San Francisco": "America/Los_Angeles", "Z": "UTC", "Europe/Munich": "Europe/Berlin"} {
		_, err := Zone(said)
		hint := "did you mean " + want + "?"
		if want == "" {
			hint = "use the name of a place, such as Asia/Shanghai, or UTC: an offset has no rules"
		}
		if daybook.HintOf(err) != hint {
			t.Errorf("%s: %v → %s", said, err, daybook.HintOf(err))
		}
	}
	for _, near := range elsewhere {
		if _, err := Zone(near); err != nil {
			t.Errorf("%s: %v", near, err)
		}
	}
}
