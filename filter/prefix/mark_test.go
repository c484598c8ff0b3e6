package prefix

import "testing"

func TestMarks(t *testing.T) {
	messages := make([][]byte, 12)
	for i := range messages {
		messages[i] = sequence(100*i+7, uint64(i+1))
	}
	ns := NamespaceOf([]byte("m"))
	seen := map[uint64]int64{} // by key: bytes of the prompt up to the border
	total := int64(0)
	for n := 1; n <= len(messages); n++ {
		total += int64(len(messages[n-1]))
		m, ok := chainOf(messages[:n]...).Mark(ns, 0)
		if !ok || m.Bytes != total {
			t.Fatalf("the last of %d borders: %+v, %v, want %d bytes", n, m, ok, total)
		}
		seen[m.Key] = total
	}
	if len(seen) != len(messages) {
		t.Errorf("%d keys for %d borders", len(seen), len(messages))
	}
	for n := 0; n <= len(messages); n++ {
		c := chainOf(messages[:n]...)
		found := 0
		for back := range 20 {
			m, ok := c.Mark(ns, back)
			if ok != (back < min(n, keptBorders)) {
				t.Errorf("border %d of %d: %v", back, n, ok)
			}
			if ok && seen[m.Key] != m.Bytes {
				t.Errorf("border %d of %d is %+v, which no shorter prompt ends with", back, n, m)
			}
			if ok {
				found++
			}
		}
		m, after := c.FirstMark(ns)
		if after != n-1 || n > 0 && (seen[m.Key] != m.Bytes || m.Bytes != int64(len(messages[0]))) {
			t.Errorf("the first of %d borders: %+v, %d", n, m, after)
		}
		if other, _ := c.Mark(ns.With(1), 0); n > 0 && seen[other.Key] != 0 {
			t.Error("a border has the same key in another namespace")
		}
	}
}
