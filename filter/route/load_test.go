package route

import (
	"math"
	"testing"
)

func TestHalved(t *testing.T) {
	for lives := 0.0; lives < 100; lives += 0.0073 {
		want := math.Exp2(-lives)
		if got := float64(halved(lives)); math.Abs(got/want-1) > 1e-7 {
			t.Errorf("after %v half-lives %v, want %v", lives, got, want)
		}
	}
	f := func(lives float64, want float32) {
		t.Helper()
		if got := halved(lives); got != want {
			t.Errorf("after %v half-lives %v, want %v", lives, got, want)
		}
	}
	f(-3, 1) // from a clock that is ahead
	f(0, 1)
	f(1, 0.5)
	f(100, 0)
	f(1e15, 0)
}
