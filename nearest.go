package daybook

// Nearest returns the word closest to got, or "" when none is close enough to be a slip of the hand: at most a third of
// its letters changed, added, lost or swapped with a neighbour (optimal string alignment distance).
func Nearest(got string, words []string) string {
	best, bestCost := "", 1+max(1, len(got)/3)
	for _, w := range words {
		if c := alignment(got, w, bestCost); c < bestCost {
			best, bestCost = w, c
		}
	}
	return best
}

func alignment(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit || len(a) > 256 || len(b) > 256 {
		return limit
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
