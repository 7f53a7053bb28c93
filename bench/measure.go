package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// spread is what several rounds came to.
type spread struct{ Min, Median, Max float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	s := slices.Sorted(slices.Values(values))
	return spread{s[0], quantile(s, 0.5), s[len(s)-1]}
}

// quantile of sorted values; between two of them it is their mean, weighted.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

func millis(ds []time.Duration) []float64 {
	ms := make([]float64, len(ds))
	for i, d := range ds {
		ms[i] = float64(d.Microseconds()) / 1000
	}
	slices.Sort(ms)
	return ms
}

// version of a module that this program is built with.
func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		switch {
		case m.Path != module:
		case m.Replace != nil:
			return "of this tree"
		default:
			return m.Version
		}
	}
	return "unknown"
}

func infoField(text, name string) string {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// ticks is how many of the units of /proc are a second on every Linux.
const ticks = 100

// load is how busy the machine was up to an instant, in seconds of all cores: all of it, and what was ours: this process, and
// those that it started.
type load struct {
	at        time.Time
	busy, own float64
}

func loadNow() load { return load{time.Now(), busySeconds(), ownSeconds()} }

// foreign is how many cores others kept busy since: what is more than a little makes figures doubtful.
func (l load) foreign() float64 {
	now := loadNow()
	d := now.at.Sub(l.at).Seconds()
	if now.busy == 0 || d <= 0 {
		return 0
	}
	return max(0, (now.busy-l.busy)-(now.own-l.own)) / d
}

// own is how many seconds of a core were ours since.
func (l load) ours() float64 { return ownSeconds() - l.own }

func busySeconds() float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0 // not Linux: then nothing is known
	}
	first, _, _ := strings.Cut(string(text), "\n")
	f := strings.Fields(first)
	sum := 0.0
	for i, v := range f[min(1, len(f)):] {
		if n, _ := strconv.ParseFloat(v, 64); i != 3 && i != 4 && i < 8 { // idle, waiting for the disk, and guests, which are counted twice
			sum += n
		}
	}
	return sum / ticks
}

// ownSeconds adds up this process and all that descend from it, with those that have ended and were waited for.
func ownSeconds() float64 {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	parent, used := map[int]int{}, map[int]float64{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(f) < 15 {
			continue
		}
		parent[pid], _ = strconv.Atoi(f[1])
		for _, i := range []int{11, 12, 13, 14} {
			n, _ := strconv.ParseFloat(f[i], 64)
			used[pid] += n / ticks
		}
	}
	self, sum := os.Getpid(), 0.0
	for pid := range used {
		for p := pid; p > 1; p = parent[p] {
			if p == self {
				sum += used[pid]
				break
			}
		}
	}
	return sum
}

// disk is what fdatasync of a page takes.
type disk struct{ P50, P99 float64 }

func probeDisk(dir string, length time.Duration) (disk, error) {
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return disk{}, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var took []time.Duration
	page := make([]byte, 4096)
	for end := time.Now().Add(length); time.Now().Before(end); {
		began := time.Now()
		if _, err := f.Write(page); err != nil {
			return disk{}, err
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return disk{}, err
		}
		took = append(took, time.Since(began))
	}
	ms := millis(took)
	return disk{quantile(ms, 0.5), quantile(ms, 0.99)}, nil
}

// counts are what a store was asked to do so far, by all of its callers. What is not known of a kind of store is negative.
type counts struct {
	statements float64 // BEGIN and COMMIT included
	bytes      float64 // that it wrote into its log
}

func (c counts) since(before counts) counts {
	d := counts{c.statements - before.statements, c.bytes - before.bytes}
	if c.statements < 0 {
		d.statements = -1
	}
	return d
}

// countsOf asks the store of a peer. SQLite counts no statements, and what it writes is what this process does.
func countsOf(ctx context.Context, t terms, p peer) (counts, error) {
	switch p.about().Store {
	case onPostgres:
		return t.place.pgCounts(ctx)
	case onRedis:
		return p.(*asynqPeer).counts(ctx)
	}
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return counts{}, err
	}
	written, err := strconv.ParseFloat(infoField(string(text), "wchar"), 64)
	return counts{-1, written}, err
}

// machine is what figures were taken on.
type machine struct {
	System string
	CPU    string
	Cores  int
	Go     string
	Disk   disk // in milliseconds
}

func thisMachine(dir string, length time.Duration) (m machine, err error) {
	m = machine{Cores: runtime.NumCPU(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPU: "unknown"}
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(v)
			break
		}
	}
	m.Disk, err = probeDisk(dir, length)
	return m, err
}
