package main

// The budgets: what Warmlane may cost, as ratios to plain Envoy. They hold at eight connections; streams have a row of their own.
const budgetConnections = 8

// budget is what a row may cost; 0 stands for no bound.
type budget struct{ cpu, p50 float64 }

// budgets are by size of the prompt, up to so many bytes.
var budgets = []struct {
	upTo int
	budget
}{
	{2 << 10, budget{cpu: 1.4, p50: 1.25}},
	{32 << 10, budget{cpu: 1.5, p50: 1.4}},
	{220 << 10, budget{cpu: 1.5, p50: 1.6}},
}

var streamBudget = budget{cpu: 1.2}

// budgetOf finds what a contestant may cost in a row. Only Warmlane has a budget.
func budgetOf(name string, w row) budget {
	switch {
	case name != warmlane:
		return budget{}
	case w.stream:
		return streamBudget
	case w.connections != budgetConnections:
		return budget{}
	}
	for _, b := range budgets {
		if w.size <= b.upTo {
			return b.budget
		}
	}
	return budget{}
}

// judge says in a word how a line keeps to its budget.
func (b budget) judge(l line) string {
	switch {
	case b == budget{}:
		return ""
	case b.cpu > 0 && l.CPU > b.cpu, b.p50 > 0 && l.P50 > b.p50:
		return "over"
	}
	return "within"
}
