package daybook

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"
)

// told is what work says of itself beside its error.
type told struct {
	mu     sync.Mutex
	data   json.RawMessage
	counts map[string]int64
}

// maxCounts bounds how many things one try may count.
const maxCounts = 50

// Return keeps v, as JSON, as the result of this try: the answer that whoever asks for the key later is given. The last one
// counts. What JSON cannot hold, or needs more than MaxResultBytes, is replaced by a sentence that says so: the work is done
// all the same. It is for the function that was given r, while it runs.
func (r *Run) Return(v any) {
	b, err := json.Marshal(v)
	if err != nil || len(b) > MaxResultBytes {
		b, _ = json.Marshal(fmt.Sprintf("a result of type %T that cannot be kept", v)) // a string always can
	}
	if r.told == nil {
		return
	}
	r.told.mu.Lock()
	defer r.told.mu.Unlock()
	r.told.data = b
}

// notKept stands in place of the result of a step that cannot be kept.
type notKept struct {
	Why string `json:"daybook_not_kept"`
}

// NotKept returns what is kept in place of the result of a step that cannot be kept, with the reason. Nothing goes on with it: see
// StepRecord.Lacks.
func NotKept(why string) json.RawMessage {
	b, _ := json.Marshal(notKept{why}) // a string always can
	return b
}

// Lacks says why the result of a done step was not kept; empty: it was, or there was none. What needs it must not go on without.
func (e *StepRecord) Lacks() string {
	var n notKept
	if len(e.Data) > MaxErrorBytes || json.Unmarshal(e.Data, &n) != nil {
		return ""
	}
	return n.Why
}

// Count adds to what this try counts of its effects, such as charges: 20. Counts are shown with the result. It is for the
// function that was given r, while it runs.
func (r *Run) Count(what string, n int64) {
	if r.told == nil || what == "" {
		return
	}
	r.told.mu.Lock()
	defer r.told.mu.Unlock()
	what = Clip(what, MaxNameBytes)
	if _, known := r.told.counts[what]; !known && len(r.told.counts) >= maxCounts {
		return
	}
	if r.told.counts == nil {
		r.told.counts = make(map[string]int64)
	}
	r.told.counts[what] += n
}

// Listen readies r for Return and Count. Runners call it on a copy of their own.
func (r *Run) Listen() { r.told = &told{} }

// Told returns what was said by Return and Count so far.
func (r *Run) Told() (data json.RawMessage, counts map[string]int64) {
	if r.told == nil {
		return nil, nil
	}
	r.told.mu.Lock()
	defer r.told.mu.Unlock()
	return r.told.data, maps.Clone(r.told.counts)
}
