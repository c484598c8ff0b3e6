package prefix

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/warmlane/warmlane/filter/shared"
)

const testCapacity = 1 << 20

// two are replicas with room for all that tests send.
var two = []Replica{{Key: 11, Clock: 100, Capacity: testCapacity}, {Key: 22, Clock: 100, Capacity: testCapacity}}

func record(t *testing.T, x *Index, c *Chain, ns Namespace, r Replica) {
	t.Helper()
	if err := x.Record(c, ns, r); err != nil {
		t.Fatal(err)
	}
}

func lookup(t *testing.T, x *Index, c *Chain, ns Namespace, replicas []Replica) []uint32 {
	t.Helper()
	matched := make([]uint32, len(replicas))
	matched[0] = 99 // to be overwritten
	if err := x.Lookup(c, ns, replicas, matched, 0); err != nil {
		t.Fatal(err)
	}
	return matched
}

func expect(t *testing.T, what string, got []uint32, want ...uint32) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: matched %d, want %d", what, got, want)
	}
}

// rung is how much of a known prompt of n bytes is found: short ones are found
// whole, of longer ones the last rung.
func rung(n int) uint32 {
	if n < 4*BlockBytes {
		return uint32(n)
	}
	r := 0
	for blocksAt(r+1)*BlockBytes <= n {
		r++
	}
	return uint32(blocksAt(r) * BlockBytes)
}

func join(parts ...[]byte) []byte { return slices.Concat(parts...) }

func TestIndex(t *testing.T) {
	doc, other := sequence(8<<20, 1), sequence(100_000, 2)
	f := func(what string, sent, asked *Chain, want uint32) {
		t.Helper()
		x := New(shared.NewMem().View(), Options{})
		record(t, x, sent, 5, two[1])
		expect(t, what, lookup(t, x, asked, 5, two), 0, want)
		expect(t, what+", other namespace", lookup(t, x, asked, 6, two), 0, 0)
	}
	f("same, tiny", chainOf(doc[:10]), chainOf(doc[:10]), 10)
	f("same, 2 KB", chainOf(doc[:2000]), chainOf(doc[:2000]), rung(2000))
	f("same, 100 KB", chainOf(doc[:100_000]), chainOf(doc[:100_000]), rung(100_000))
	f("same, 8 MB", chainOf(doc), chainOf(doc), 8<<20)
	f("same, no border", new(Chain), new(Chain), 0)
	f("empty", chainOf(nil), chainOf(nil), 0)
	f("next turn, tiny", chainOf(doc[:600]), chainOf(doc[:600], other[:300], other[300:400]), 600)
	f("next turn, 3 KB", chainOf(doc[:3000]), chainOf(doc[:3000], other[:300], other[300:400]), rung(3000))
	f("next turn with two results", chainOf(doc[:3000]), chainOf(doc[:3000], other[:300], other[:10], other[300:400]), rung(3000))
	f("next turn beyond group A", chainOf(doc[:16_000]), chainOf(doc[:16_000], other[:3000], other[3000:4000]), rung(16_000))
	f("next turn beyond group B", chainOf(doc[:1_000_000]), chainOf(doc[:1_000_000], other, other[:10]), rung(1_000_000))
	f("beginning of a document", chainOf(doc[:100_000]), chainOf(doc[:50_000]), 48*1024)
	f("document with another end", chainOf(doc[:100_000]), chainOf(join(doc[:50_000], other)), 48*1024)
	f("document with another end, 8 MB", chainOf(doc), chainOf(join(doc[:5<<20], other)), 5<<20)
	f("other text, 300 bytes", chainOf(doc[:300]), chainOf(other[:300]), 0)
	f("other text", chainOf(doc[:100_000]), chainOf(other), 0)
	f("same second half", chainOf(doc[:40_000]), chainOf(join(other[:20_000], doc[20_000:40_000])), 0)
	f("prompt without its first block", chainOf(doc[:40_000]), chainOf(doc[BlockBytes:40_000]), 0)
}

// The second half of a prompt is warm elsewhere, where it was a beginning.
func TestBlocksInTheMiddleDoNotMatch(t *testing.T) {
	a, b := sequence(8192, 1), sequence(8192, 2)
	x := New(shared.NewMem().View(), Options{})
	record(t, x, chainOf(join(a, b)), 5, two[0])
	record(t, x, chainOf(b), 5, two[1])
	expect(t, "B then A", lookup(t, x, chainOf(join(b, a)), 5, two), 0, 8192)
	expect(t, "B then something", lookup(t, x, chainOf(join(b, []byte("x"))), 5, two), 0, 8192)
	expect(t, "A then something", lookup(t, x, chainOf(join(a, []byte("x"))), 5, two), 8192, 0)
}

func TestUnknownReplicasDoNotMatter(t *testing.T) {
	c := chainOf(sequence(5000, 1))
	x := New(shared.NewMem().View(), Options{})
	record(t, x, c, 5, Replica{Key: 33, Capacity: testCapacity})
	record(t, x, c, 5, Replica{Key: 0, Capacity: testCapacity})
	expect(t, "others", lookup(t, x, c, 5, two), 0, 0)
	expect(t, "key 0", lookup(t, x, c, 5, []Replica{{Key: 0, Capacity: 1}}), rung(5000))
	if err := x.Lookup(c, 5, nil, nil, 0); err != nil {
		t.Error(err)
	}
}

func TestManyReplicas(t *testing.T) {
	c := chainOf(sequence(5000, 1))
	x := New(shared.NewMem().View(), Options{})
	replicas := make([]Replica, 300)
	for i := range replicas {
		replicas[i] = Replica{Key: uint32(i) << 20, Clock: 7, Capacity: 10}
	}
	for _, i := range []int{0, 17, 299} {
		record(t, x, c, 5, replicas[i])
	}
	for i, m := range lookup(t, x, c, 5, replicas) {
		if want := i == 0 || i == 17 || i == 299; (m == rung(5000)) != want {
			t.Errorf("replica %d: %d bytes", i, m)
		}
	}
}

func TestAge(t *testing.T) {
	c := chainOf(sequence(50_000, 1))
	f := func(what string, stamp, clock, capacity uint32, want uint32) {
		t.Helper()
		x := New(shared.NewMem().View(), Options{})
		record(t, x, c, 5, Replica{Key: 11, Clock: stamp, Capacity: capacity})
		expect(t, what, lookup(t, x, c, 5, []Replica{{Key: 11, Clock: clock, Capacity: capacity}}), want)
	}
	f("now", 100, 100, 0, rung(50_000))
	f("just in the cache", 100, 600, 500, rung(50_000))
	f("just out of the cache", 100, 601, 500, 0)
	f("another worker's clock is ahead", 100, 90, 500, rung(50_000))
	f("clock wrapped around", 1<<32-10, 90, 100, rung(50_000))
	f("clock wrapped around, out", 1<<32-11, 90, 100, 0)
}

func TestFreshEntriesAreNotWritten(t *testing.T) {
	mem := shared.NewMem()
	x := New(mem.View(), Options{})
	r := Replica{Key: 11, Clock: 1000, Capacity: 1600}
	long, short := chainOf(sequence(10_000, 1)), chainOf(sequence(5000, 1))
	f := func(what string, c *Chain, clock uint32, want int) {
		t.Helper()
		before := mem.Sets
		r.Clock = clock
		record(t, x, c, 5, r)
		if got := mem.Sets - before; got != want {
			t.Errorf("%s: %d writes, want %d", what, got, want)
		}
	}
	f("first", long, 1000, 2)
	f("again", long, 1100, 0)
	f("its beginning", short, 1100, 0)
	f("a sixteenth of the cache later", long, 1101, 2)
	r.Key = 22
	f("another replica", long, 1101, 2)
}

func TestNewEntryReplacesWhatItCovers(t *testing.T) {
	x := New(shared.NewMem().View(), Options{})
	doc := sequence(16_000, 1)
	for n := 1024; n <= len(doc); n += 500 {
		record(t, x, chainOf(doc[:n]), 5, two[0])
	}
	im, err := x.read(&x.groups, x.groupBucket(0, chainOf(doc), 5))
	if err != nil {
		t.Fatal(err)
	}
	if size := entrySize(im.entries()); size != len(im.entries()) {
		t.Errorf("a conversation of 30 turns takes %d bytes, its last entry %d", len(im.entries()), size)
	}
}

func TestWithdraw(t *testing.T) {
	doc := sequence(2<<20, 1)
	for _, n := range []int{100, 3000, 40_000, len(doc)} {
		x := New(shared.NewMem().View(), Options{})
		c := chainOf(doc[:n])
		record(t, x, c, 5, two[0])
		record(t, x, c, 5, two[1])
		record(t, x, chainOf(doc[:n], doc[:5000]), 5, two[0])
		if err := x.Withdraw(c, 5, two[1].Key); err != nil {
			t.Fatal(err)
		}
		expect(t, "withdrawn", lookup(t, x, c, 5, two), rung(n), 0)
		writes := x.Stats().Writes
		if err := x.Withdraw(c, 5, 33); err != nil || x.Stats().Writes != writes {
			t.Errorf("withdrawing what was not there: %v, %d writes", err, x.Stats().Writes-writes)
		}
	}
}

// One system prompt of 4 KB, 2,000 users: the bucket of the system prompt
// holds a few dozen of them.
func TestPopularSystemPrompt(t *testing.T) {
	mem := shared.NewMem()
	x := New(mem.View(), Options{})
	system := sequence(4096, 1)
	first := func(i int) *Chain { return chainOf(system, sequence(500, uint64(i)+10)) }
	second := func(i int) *Chain {
		return chainOf(system, sequence(500, uint64(i)+10), sequence(300, uint64(i)+5000), sequence(200, uint64(i)+9000))
	}
	replicas := make([]Replica, 8)
	for i := range replicas {
		replicas[i] = Replica{Key: uint32(i) + 1, Capacity: testCapacity}
	}
	for i := range 2000 {
		record(t, x, first(i), 5, replicas[i%8])
	}
	for i := range 2000 {
		matched := lookup(t, x, second(i), 5, replicas)
		for r, m := range matched {
			low, high := uint32(4096), uint32(4096)
			if r == i%8 {
				low, high = rung(4596), 4596
			}
			if m < low || m > high {
				t.Fatalf("conversation %d: replica %d has %d bytes, want %d to %d", i, r, m, low, high)
			}
		}
	}
	if x.Stats().Evicted == 0 {
		t.Error("the bucket of the system prompt did not overflow, so nothing was shown")
	}
	checkSizes(t, mem, x)
}

// checkSizes fails if a bucket is larger than it may be.
func checkSizes(t *testing.T, mem *shared.Mem, x *Index) {
	t.Helper()
	store := mem.View()
	for n := range x.opts.Groups + x.opts.Borders {
		limit := x.opts.GroupBytes
		if n >= x.opts.Groups {
			limit = x.opts.BorderBytes
		}
		value, _, err := store.Get(shared.AppendBucketKey(nil, uint32(n)))
		if err == nil && len(value) > limit {
			t.Fatalf("bucket %d has %d bytes, more than %d", n, len(value), limit)
		}
	}
}

func TestFullBucketsForgetTheOldest(t *testing.T) {
	mem := shared.NewMem()
	x := New(mem.View(), Options{Groups: 1, GroupBytes: 1024, Borders: 1, BorderBytes: 64})
	for i := range 50 {
		record(t, x, chainOf(sequence(5000, uint64(i))), 5, two[0])
	}
	expect(t, "the newest", lookup(t, x, chainOf(sequence(5000, 49)), 5, two), rung(5000), 0)
	expect(t, "one of the last", lookup(t, x, chainOf(sequence(5000, 44)), 5, two), 19*BlockBytes, 0)
	expect(t, "the oldest", lookup(t, x, chainOf(sequence(5000, 0)), 5, two), 0, 0)
	checkSizes(t, mem, x)
}

func TestBudget(t *testing.T) {
	f := func(what string, chain *Chain, maxReads, maxWrites int) {
		t.Helper()
		mem := shared.NewMem()
		x := New(mem.View(), Options{})
		for turn, clock := range []uint32{0, 0, testCapacity / 2} { // new, known, in need of a refresh
			r := two[0]
			r.Clock = clock
			reads, writes := mem.Gets, mem.Sets
			lookup(t, x, chain, 5, []Replica{r})
			record(t, x, chain, 5, r)
			if mem.Gets-reads > maxReads || mem.Sets-writes > maxWrites {
				t.Errorf("%s, turn %d: %d reads and %d writes, want at most %d and %d",
					what, turn, mem.Gets-reads, mem.Sets-writes, maxReads, maxWrites)
			}
		}
		s := x.Stats()
		if s.Reads != uint64(mem.Gets) || s.Writes != uint64(mem.Sets) || s.Damaged != 0 || s.Conflicts != 0 {
			t.Errorf("%s: stats %+v, the store has seen %d reads and %d writes", what, s, mem.Gets, mem.Sets)
		}
	}
	doc := sequence(1<<20, 1)
	f("500 bytes", chainOf(doc[:500]), 1, 1)
	f("2 KB", chainOf(doc[:300], doc[300:2000]), 2, 2)
	f("32 KB", chainOf(doc[:300], doc[300:32<<10]), 3, 3)
	f("1 MB, 3 turns", chainOf(doc[:300], doc[300:500_000], doc[500_000:500_100], doc[500_100:700_000], doc[700_000:]), 6, 3)
}

func TestTwoWorkers(t *testing.T) {
	mem := shared.NewMem()
	a, b := New(mem.View(), Options{}), New(mem.View(), Options{})
	system, common := sequence(5000, 1), rung(5000)
	one, other := chainOf(system, sequence(1000, 2)), chainOf(system, sequence(1000, 3))

	// Both read the empty bucket, both write it: b's write must not lose a's.
	lookupAt(t, a, one, 0)
	lookupAt(t, b, other, 0)
	record(t, a, one, 5, two[0])
	record(t, b, other, 5, two[1])
	if b.Stats().Conflicts != 1 {
		t.Errorf("%d conflicts, want 1", b.Stats().Conflicts)
	}
	expect(t, "a learns from b", lookupAt(t, a, one, 2000), rung(6000), common)
	expect(t, "b learns from a", lookupAt(t, b, other, 2000), common, rung(6000))

	// a withdraws what b looks at.
	if err := a.Withdraw(one, 5, two[0].Key); err != nil {
		t.Fatal(err)
	}
	record(t, b, one, 5, two[1])
	expect(t, "withdrawn", lookupAt(t, b, one, 4000), 0, rung(6000))
}

// rival is a store on which another worker writes before each of ours.
type rival struct {
	shared.Store
	other  shared.Store
	losses int
}

func (r *rival) Set(key, value []byte, cas uint32) error {
	if r.losses > 0 {
		r.losses--
		if err := r.other.Set(key, []byte("?"), 0); err != nil {
			return err
		}
	}
	return r.Store.Set(key, value, cas)
}

func TestRecordGivesUpAfterThreeLosses(t *testing.T) {
	f := func(losses int, want uint32) {
		t.Helper()
		mem := shared.NewMem()
		x := New(&rival{Store: mem.View(), other: mem.View(), losses: losses}, Options{})
		c := chainOf(sequence(500, 1))
		record(t, x, c, 5, two[0])
		expect(t, "after losses", lookup(t, x, c, 5, two), want, 0)
		if got := int(x.Stats().Conflicts); got != losses {
			t.Errorf("%d conflicts, want %d", got, losses)
		}
	}
	f(0, 500)
	f(2, 500)
	f(3, 0)
}

var errBroken = errors.New("broken")

type broken struct{ shared.Store }

func (broken) Get([]byte) ([]byte, uint32, error) { return nil, 0, errBroken }

func TestStoreErrorsAreReturned(t *testing.T) {
	x := New(broken{}, Options{})
	for _, n := range []int{10, 5000} {
		c := chainOf(sequence(n, 1), sequence(10, 2), sequence(10, 3))
		matched := make([]uint32, 2)
		if err := x.Lookup(c, 5, two, matched, 0); !errors.Is(err, errBroken) {
			t.Errorf("Lookup of %d bytes: %v", n, err)
		}
		if err := x.Record(c, 5, two[0]); !errors.Is(err, errBroken) {
			t.Errorf("Record of %d bytes: %v", n, err)
		}
		if err := x.Withdraw(c, 5, 1); !errors.Is(err, errBroken) {
			t.Errorf("Withdraw of %d bytes: %v", n, err)
		}
	}
}

func TestDamagedBuckets(t *testing.T) {
	entry := func(count uint32, tags int) []byte {
		b := binary.LittleEndian.AppendUint32(nil, 11)
		b = binary.LittleEndian.AppendUint32(b, 100)
		b = binary.LittleEndian.AppendUint32(b, count)
		return append(b, make([]byte, 4*tags)...)
	}
	group := []byte{'W', 'L', 'G', 1}
	border := []byte{'W', 'L', 'B', 1}
	f := func(what string, value []byte) {
		t.Helper()
		mem := shared.NewMem()
		store := mem.View()
		x := New(mem.View(), Options{Groups: 1, Borders: 1})
		for n := range uint32(2) {
			if err := store.Set(shared.AppendBucketKey(nil, n), value, 0); err != nil {
				t.Fatal(err)
			}
		}
		c := chainOf(sequence(5000, 1))
		expect(t, what, lookup(t, x, c, 5, two), 0, 0)
		if x.Stats().Damaged == 0 {
			t.Errorf("%s: not counted", what)
		}
		record(t, x, c, 5, two[0])
		expect(t, what+", overwritten", lookup(t, x, c, 5, two), rung(5000), 0)
	}
	f("empty value", nil)
	f("somebody else's", []byte("{}"))
	f("other version", []byte{'W', 'L', 'G', 2})
	f("half an entry head", append(group[:4:4], entry(1, 1)[:7]...))
	f("no tags", append(group[:4:4], entry(0, 0)...))
	f("too few tags", append(group[:4:4], entry(5, 4)...))
	f("too many tags", append(group[:4:4], entry(maxTags+1, maxTags+1)...))
	f("a huge count", append(group[:4:4], entry(1<<31, 4)...))
	f("a good entry, then damage", append(append(group[:4:4], entry(2, 2)...), 1, 2, 3))
	f("too large", append(group[:4:4], make([]byte, 100_000)...))
	f("too large a border bucket", append(border[:4:4], make([]byte, 16*10_000)...))
	f("half a border", append(border[:4:4], make([]byte, 20)...))
}

// An entry with the right last tag and wrong ones before it is damage.
func TestDamagedEntryDoesNotCover(t *testing.T) {
	mem := shared.NewMem()
	x := New(mem.View(), Options{Groups: 1})
	c := chainOf(sequence(5000, 1))
	record(t, x, c, 5, two[0])
	key := shared.AppendBucketKey(nil, 0)
	value, _, err := mem.View().Get(key)
	if err != nil {
		t.Fatal(err)
	}
	value[magicBytes+entryHead+4]++
	if err := mem.View().Set(key, value, 0); err != nil {
		t.Fatal(err)
	}
	record(t, x, c, 5, two[0])
	expect(t, "recorded again", lookup(t, x, c, 5, two), rung(5000), 0)
}

func FuzzBuckets(f *testing.F) {
	mem := shared.NewMem()
	x := New(mem.View(), Options{Groups: 1, Borders: 1})
	for n := range 20 {
		if err := x.Record(chainOf(sequence(n*1000, 1)), 5, two[n%2]); err != nil {
			f.Fatal(err)
		}
	}
	for n := range uint32(2) {
		value, _, err := mem.View().Get(shared.AppendBucketKey(nil, n))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(value, uint16(5000))
	}
	f.Add([]byte("WLG\x01"), uint16(3000))
	f.Fuzz(func(t *testing.T, value []byte, size uint16) {
		mem := shared.NewMem()
		store := mem.View()
		for n := range uint32(2) {
			if err := store.Set(shared.AppendBucketKey(nil, n), value, 0); err != nil {
				t.Fatal(err)
			}
		}
		x := New(mem.View(), Options{Groups: 1, Borders: 1})
		c := chainOf(sequence(int(size), 1))
		for _, m := range lookup(t, x, c, 5, two) {
			if int(m) > int(size) {
				t.Fatalf("matched %d of %d bytes", m, size)
			}
		}
		record(t, x, c, 5, two[1])
		if got := lookup(t, x, c, 5, two)[1]; got != rung(int(size)) {
			t.Fatalf("%d of %d bytes matched after Record", got, size)
		}
		if err := x.Withdraw(c, 5, two[1].Key); err != nil {
			t.Fatal(err)
		}
		for n := range uint32(2) { // what nobody had to write stays as it was found
			left, _, err := store.Get(shared.AppendBucketKey(nil, n))
			if err == nil && bytes.Equal(left, value) {
				_ = store.Set(shared.AppendBucketKey(nil, n), nil, 0)
			}
		}
		checkSizes(t, mem, x)
	})
}

func TestIndexMakesNoGarbage(t *testing.T) {
	doc := sequence(100_000, 1)
	x := New(shared.NewMem().View(), Options{})
	c := chainOf(doc[:5000], doc[5000:90_000], doc[90_000:])
	replicas := slices.Clone(two)
	matched := make([]uint32, 2)
	record(t, x, c, 5, replicas[0])
	if n := testing.AllocsPerRun(100, func() {
		replicas[0].Clock += testCapacity / 2
		if x.Lookup(c, 5, replicas, matched, 0) != nil || x.Record(c, 5, replicas[0]) != nil || x.Withdraw(c, 5, 22) != nil {
			t.Error("failed")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if matched[0] != rung(100_000) {
		t.Errorf("matched %d", matched)
	}
}

func TestOptions(t *testing.T) {
	f := func(o, want Options) {
		t.Helper()
		if got := o.withDefaults(); got != want {
			t.Errorf("%+v became %+v, want %+v", o, got, want)
		}
	}
	f(Options{}, Options{1024, 8 << 10, 8192, 1 << 10})
	f(Options{-1, 1, -5, 1}, Options{1, 1 << 10, 1, 64})
	f(Options{1 << 30, 1 << 30, 1 << 30, 1 << 30}, Options{1 << 20, 64 << 10, 1 << 20, 64 << 10})
	o := Options{}.withDefaults()
	if total := o.Groups*o.GroupBytes + o.Borders*o.BorderBytes; total != 16<<20 {
		t.Errorf("the defaults allow %d bytes, the documentation says 16 MiB", total)
	}
}
