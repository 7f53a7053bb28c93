package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/daybook-run/daybook"
	"github.com/daybook-run/daybook/calendar"
)

// DefaultPath is the file that is read when none is named.
const DefaultPath = "daybook.yaml"

// MaxFileBytes bounds a file.
const MaxFileBytes = 5 << 20

// File is what a daybook.yaml says, checked and completed.
type File struct {
	Path      string // as it was named
	Name      string // title; empty: the host name
	URL       string // base of links in alerts; may be empty
	Lang      string // en or zh-CN
	Timezone  string // of jobs that name none; may be empty
	Database  Secret
	Slots     Slots
	Retention Retention
	Freezes   []daybook.FreezeRule // in the order of the file; their schedules are in Timezone
	Channels  []Channel            // in the order of the file
	Alerts    Alerts
	Jobs      []Job   // in the order of the file
	Warnings  []Fault // what is allowed and surprises people, sorted by position
}

// Slots says how many runs of a lane a node works on at once.
type Slots struct {
	Live     int `json:"live"`
	Backfill int `json:"backfill"`
}

// Retention says how long what may be forgotten is kept. Keys, dead letters, and the results that an undo needs are
// kept for good.
type Retention struct {
	Log      time.Duration // attempts, outputs, payloads, step results; daybook.Forever
	LogRuns  int           // at most so many runs a job keep them; 0: no limit
	Activity time.Duration // daybook.Forever by default
}

// Defaults of a file.
var (
	DefaultSlots     = Slots{Live: 16, Backfill: 4}
	DefaultRetention = Retention{Log: 30 * 24 * time.Hour, Activity: daybook.Forever}
)

// Job is a definition of the file, complete with its defaults. Paths in it (dir, calendar) are as written: File.Locate
// says where they are. Values of env may be references: ResolveEnv looks them up.
type Job struct {
	daybook.Job
	Schedule *calendar.Schedule // compiled; Job.Schedule is its text
	Days     *calendar.Days     // the business calendar; nil: none
	Line     int                // where the job begins in the file
	Column   int
}

// Find returns the job of a name. The error has CodeNotFound and proposes the nearest name.
func (f *File) Find(name string) (*Job, error) {
	names := make([]string, len(f.Jobs))
	for i := range f.Jobs {
		if f.Jobs[i].Name == name {
			return &f.Jobs[i], nil
		}
		names[i] = f.Jobs[i].Name
	}
	err := daybook.NotFound("no job %q in %s", daybook.Clip(name, 70), f.Path)
	if near := daybook.Nearest(name, names); near != "" {
		return nil, err.WithHint("did you mean %s?", near)
	}
	return nil, err.WithHint("daybook check lists the jobs of the file")
}

// Load reads the file at path. Errors have CodeInvalid; faults of the file are Errors.
func Load(path string) (*File, error) {
	src, err := readLimited(path, MaxFileBytes+1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, daybook.Invalid("there is no file %s", path).WithHint("daybook init writes one; -c FILE names another")
	}
	if err != nil {
		return nil, daybook.Invalid("read %s", path).Because(plainPathError(err))
	}
	return Parse(path, src)
}

// readLimited reads at most limit bytes of a file: a device or a pipe never ends.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// plainPathError drops the operation and the path, which the message has already.
func plainPathError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
