package control

import (
	"fmt"
	"time"

	"github.com/daybook-run/daybook"
)

// What the doctor says to do.
var (
	walDo       = daybook.Say("look for a reader that keeps a transaction open; daybook serve folds the log in when it can")
	serveDo     = command("daybook serve")
	onceWaitsDo = daybook.Say("the next call of its line goes on; daybook run list names it")
	queueDo     = daybook.Say("raise slots, or look at what is running: daybook run list --state running")
	offsetDo    = daybook.Say("set the clock of that machine: a node that is off by more than 5 s claims nothing")
	driftDo     = daybook.Say("let a time service keep the clock of that machine: beyond 5 s it claims nothing")
	overtakenDo = daybook.Say("load the newer file there: daybook serve takes it at SIGHUP or when it is started again")
	deafDo      = daybook.Say("a pooler in transaction mode stands in between: nothing is lost, what other nodes make due starts within a second; a URL that leads past it makes it faster")
	tzdataDo    = daybook.Say("give all machines the same zone data, so that they agree on coming windows")
	versionDo   = daybook.Say("run one version everywhere")
	lettersDo   = command("daybook dead list")
	noJobsDo    = daybook.Say("daybook init writes a first daybook.yaml, daybook serve makes its jobs known")
	retiredDo   = daybook.Say("daybook run cancel KEY --reason …, or define the job again")
	horizonDo   = daybook.Say("add the days off of the coming year: beyond that date only weekends are known")
	checkDo     = command("daybook check")
	holesDo     = daybook.Say("daybook serve decides them at its next scan; daybook job trigger JOB --window LABEL runs one now")
	noChannelDo = daybook.Say("name one in the file, under channels and alerts: P0, and try it: daybook alert test")
)

func noHoldsText() daybook.Text { return daybook.Say("nothing is held") }

func noLettersText() daybook.Text { return daybook.Say("no dead letter is open") }

func oldLettersText(n int) daybook.Text {
	return daybook.Count(n, "%d dead letter is open for more than 24 h", "%d dead letters are open for more than 24 h")
}

func ledgerText(i daybook.LedgerInfo) daybook.Text {
	return daybook.Say("ledger %s, schema %d, %s", i.Database, i.Schema, bytesText(i.Bytes))
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", (n+1023)/1024)
}

func walText(n int64) daybook.Text {
	return daybook.Say("the write-ahead log has grown to %s", bytesText(n))
}

func onceOnlyText() daybook.Text {
	return daybook.Say("only daybook once works on this ledger: it needs no serve")
}

func onceWaitsText(n int) daybook.Text {
	return daybook.Count(n, "%d run waits for its line, which daybook once runs", "%d runs wait for their lines, which daybook once runs")
}

// idleQueueText says that nobody executes, and what waits meanwhile.
func idleQueueText(nobody daybook.Text, c daybook.Counts, now time.Time) daybook.Text {
	n := c.Live[daybook.Scheduled] + c.Live[daybook.Retryable]
	if n == 0 {
		return nobody
	}
	waiting := daybook.Count(n, "%d run waits", "%d runs wait")
	if !c.OldestDue.IsZero() && c.OldestDue.Before(now) {
		return daybook.Say("%s, and %s, the oldest for %s", nobody, waiting, short(now.Sub(c.OldestDue)))
	}
	return daybook.Say("%s, and %s", nobody, waiting)
}

func queueText(late time.Duration) daybook.Text {
	return daybook.Say("the oldest due run waits for %s", short(late))
}

func offsetText(n daybook.Node) daybook.Text {
	return daybook.Say("node %s: its clock is off by %s", whoever(n.Host), n.Offset.Round(time.Millisecond))
}

func overtakenText(n daybook.Node) daybook.Text {
	return daybook.Say("node %s: %s", whoever(n.Host), daybook.Count(n.Overtaken, "%d job is planned there no more, as another node loaded a newer definition",
		"%d jobs are planned there no more, as another node loaded newer definitions"))
}

func deafText(n daybook.Node) daybook.Text {
	return daybook.Say("node %s hears no NOTIFY", whoever(n.Host))
}

func tzdataText(n daybook.Node, here string) daybook.Text {
	return daybook.Say("node %s has zone data %s, this program has %s", whoever(n.Host), n.TZData, here)
}

func versionText(n, other daybook.Node) daybook.Text {
	return daybook.Say("node %s runs %s, node %s runs %s", whoever(n.Host), n.Version, whoever(other.Host), other.Version)
}

func nodesText(alive []daybook.Node, tzdata string) daybook.Text {
	return daybook.Count(len(alive), "%d serve is alive, version %s, zone data %s", "%d serves are alive, version %s, zone data %s", alive[0].Version, tzdata)
}

func jobsText(n int) daybook.Text {
	return daybook.Count(n, "%d job: its schedules work, and every window of the last 7 days is accounted for",
		"%d jobs: their schedules work, and every window of the last 7 days is accounted for")
}

func jobFaultText(job string, fault any) daybook.Text { return daybook.Say("job %s: %s", job, fault) }

func retiredText(job string, keys []string) daybook.Text {
	return daybook.Say("job %s is defined by no file any more and has open runs: %s", job, listed(keys))
}

func horizonText(name, last string) daybook.Text {
	return daybook.Say("calendar %s ends %s", name, last)
}

func behindText(job string, f daybook.Fire, now time.Time) daybook.Text {
	return daybook.Say("job %s: no scheduler has decided the fire %s, %s ago", job, f.Nominal, short(now.Sub(f.At)))
}

func holesText(keys []string) daybook.Text {
	return daybook.Count(len(keys), "%d window has neither a run nor a reason: %s", "%d windows have neither a run nor a reason: %s", listed(keys))
}

// listed names a few of many.
func listed(keys []string) daybook.Text {
	const few = 5
	if len(keys) <= few {
		return daybook.Say("%s", daybook.Words(keys))
	}
	return daybook.Say("%s and %d more", daybook.Words(keys[:few]), len(keys)-few)
}

func noChannelText(jobs int) daybook.Text {
	return daybook.Count(jobs, "no channel is told of P0 alerts, and %d job touches money: they stand in daybook alert list and nowhere else",
		"no channel is told of P0 alerts, and %d jobs touch money: they stand in daybook alert list and nowhere else")
}

func channelsText(channels []string) daybook.Text {
	return daybook.Say("P0 alerts are told on %s", daybook.Words(channels))
}
