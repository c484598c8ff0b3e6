package route

import "testing"

func TestBacklogLeft(t *testing.T) {
	f := func(owed, soft uint32, ms int64, want float32) {
		t.Helper()
		b := backlog{owed: owed, soft: soft, since: 1000, rate: 1000}
		if got := b.left(1000 + ms); got != want {
			t.Errorf("left = %v, want %v", got, want)
		}
	}
	f(0, 0, 0, 0)
	f(0, 0, 60000, 0)
	f(500, 0, 0, 500)
	f(500, 0, 200, 300)
	f(500, 300, 200, 600)
	f(500, 0, -50, 500) // another worker's clock is ahead
	f(500, 0, 500, 0)
	f(500, 0, 900, 400) // overdue: as long again as it is late
	f(0, 500, 900, 0)   // nobody would have told us
}

func TestBacklogSend(t *testing.T) {
	idle := backlog{soft: 400, since: 0, rate: 1000}.send(300)
	if idle.soft != 100 || idle.since != 300 {
		t.Errorf("without streams the soft part drains: got %+v", idle)
	}
	waiting := backlog{owed: 1, soft: 400, since: 0, rate: 1000}.send(300)
	if waiting.soft != 400 || waiting.since != 0 {
		t.Errorf("while a stream waits, since stays: got %+v", waiting)
	}
}

func TestBacklogFirst(t *testing.T) {
	b := backlog{owed: 100, soft: 400, since: 0, rate: 1000}
	if got := b.first(300, 200); got.soft != 300 || got.since != 300 {
		t.Errorf("100 tokens beyond the stream's own were soft ones: got %+v", got)
	}
	if got := b.first(300, 900); got.soft != 400 || got.since != 300 {
		t.Errorf("the stream alone took longer: got %+v", got)
	}
	if got := b.first(-5, 0); got != b {
		t.Errorf("a first token before since changes nothing: got %+v", got)
	}
}

func TestLearn(t *testing.T) {
	rate := float32(8000)
	for range 200 {
		rate = learn(rate, 16000, 1000)
	}
	if rate < 15900 || rate > 16000 {
		t.Errorf("rate = %v, want it near 16000", rate)
	}
	if wild := learn(rate, 4000000, 1); wild > rate*1.01 {
		t.Errorf("one short wild sample moved the rate from %v to %v", rate, wild)
	}
	for range 500 {
		rate = learn(rate, 100, 200)
	}
	if rate > 510 {
		t.Errorf("rate = %v, want it near 500: short prompts are heard, too", rate)
	}
	for range 10000 {
		rate = learn(rate, 0, 100000)
	}
	if !plausibleRate(rate) {
		t.Errorf("rate = %v left its bounds", rate)
	}
}
