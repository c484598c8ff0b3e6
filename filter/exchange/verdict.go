package exchange

// Verdict is what the host is to do after an event. It belongs to the
// worker, and its contents are valid until the worker's next event.
type Verdict struct {
	// Remove and Add change the headers of the event at hand.
	Remove []string
	Add    []Pair
	// Properties are written as filter state, from which the native filters
	// behind this one make headers and the access log its line.
	Properties []Pair
	// Reply, if not nil, answers the client instead of a replica.
	Reply *Reply
	// Call, if not nil, is to be made. If its Job is 0 the request is held until
	// the answer is there.
	Call *Call
}

// Pair is a name and a value. The value may point into scratch memory.
type Pair struct {
	Name  string
	Value []byte
}

// Reply is an answer of the filter's own, in OpenAI's error shape.
type Reply struct {
	Status int
	Reason Reason
	Body   []byte
}

func (v *Verdict) reset() {
	v.Remove, v.Add, v.Properties, v.Reply, v.Call = v.Remove[:0], v.Add[:0], v.Properties[:0], nil, nil
}

func (v *Verdict) remove(name string)            { v.Remove = append(v.Remove, name) }
func (v *Verdict) add(name string, value []byte) { v.Add = append(v.Add, Pair{name, value}) }
func (v *Verdict) property(n string, val []byte) { v.Properties = append(v.Properties, Pair{n, val}) }
