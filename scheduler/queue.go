package scheduler

import "container/heap"

// queue orders jobs by when they are looked at next. Those with no such instant are not in it. Of one instant they come by
// name: rows that lie beside each other are written together.
type queue []*entry

func (q *queue) put(e *entry) {
	switch {
	case e.next.IsZero() && e.index >= 0:
		heap.Remove(q, e.index)
	case e.next.IsZero():
	case e.index >= 0:
		heap.Fix(q, e.index)
	default:
		heap.Push(q, e)
	}
}

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if c := q[i].next.Compare(q[j].next); c != 0 {
		return c < 0
	}
	return q[i].Name < q[j].Name
}
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push and Pop implement heap.Interface.
func (q *queue) Push(x any) {
	e := x.(*entry)
	e.index = len(*q)
	*q = append(*q, e)
}

func (q *queue) Pop() any {
	old := *q
	e := old[len(old)-1]
	e.index = -1
	*q = old[:len(old)-1]
	return e
}
