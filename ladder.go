package daybook

import (
	"hash/fnv"
	"math"
	"time"
)

// Delay returns how long to wait before the try that follows the given number of failures (1 for the second try), and
// false when the ladder is used up. Jitter adds up to its share of the delay, never takes any away, and depends on the
// key and the step alone: the same question has the same answer on every node. A far side's RetryAfter lengthens a
// delay, within MaxRetryAfter, and never shortens one.
func (r Retry) Delay(k Key, failures int, retryAfter time.Duration) (time.Duration, bool) {
	if failures < 1 || failures > len(r.Backoff) {
		return 0, false
	}
	d := r.Backoff[failures-1]
	d += time.Duration(float64(d) * max(r.Jitter, 0) * Spread(string(k), failures))
	return max(d, min(retryAfter, MaxRetryAfter)), true
}

// Spread returns a number in [0, 1) that depends on the text and the number alone.
func Spread(text string, n int) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	_, _ = h.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16)})
	x := h.Sum64() // FNV's low bits are well mixed, its high ones are not for short texts: finish as splitmix64 does
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}

// StartDelay is the spread of a start after its nominal fire: fixed per key, below jitter.
func StartDelay(k Key, jitter time.Duration) time.Duration {
	if jitter <= 0 {
		return 0
	}
	return time.Duration(math.Floor(float64(jitter) * Spread(string(k), 0))).Truncate(time.Microsecond)
}
