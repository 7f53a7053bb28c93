package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/daybook-run/daybook"
)

// traceparent names an attempt to tracing systems (W3C Trace Context): one trace a run, one parent an attempt. Both come
// from the key and the fence, so that whoever knows these finds the trace, and nothing has to be kept.
func traceparent(o daybook.Order) string {
	trace := sha256.Sum256([]byte("daybook trace\n" + string(o.Run.Key)))
	parent := sha256.Sum256([]byte("daybook attempt\n" + string(o.Run.Key) + "\n" + strconv.FormatInt(o.Fence, 10)))
	return "00-" + hex.EncodeToString(trace[:16]) + "-" + hex.EncodeToString(parent[:8]) + "-01"
}
