package lab

import (
	"container/heap"
	"time"
)

// clock is virtual time with what is to happen in it.
type clock struct {
	now   time.Duration
	queue agenda
	count int
}

// entry is something that is due at a time; of equal times the earlier entered
// comes first.
type entry struct {
	due   time.Duration
	order int
	do    func()
}

// at plans do for the given time.
func (c *clock) at(due time.Duration, do func()) {
	c.count++
	heap.Push(&c.queue, entry{due, c.count, do})
}

// next is when the next entry is due, never if there is none.
func (c *clock) next() time.Duration {
	if len(c.queue) == 0 {
		return never
	}
	return c.queue[0].due
}

// step makes it the time of the next entry and does it.
func (c *clock) step() {
	e := heap.Pop(&c.queue).(entry)
	c.now = e.due
	e.do()
}

// never is later than anything.
const never = time.Duration(1<<63 - 1)

// agenda implements heap.Interface.
type agenda []entry

func (a agenda) Len() int      { return len(a) }
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(entry)) }

func (a agenda) Less(i, j int) bool {
	return a[i].due < a[j].due || a[i].due == a[j].due && a[i].order < a[j].order
}

func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = entry{}
	*a = (*a)[:last]
	return e
}
