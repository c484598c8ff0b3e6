//go:build wasip1

package abi

// Shared reads shared data, which all VMs with this vm_id see, and the number
// that SetShared compares. An absent key gives types.ErrorStatusNotFound. The
// value is valid until the next call of Shared.
func Shared(key []byte) (value []byte, cas uint32, err error) {
	sharedBuffer.expect()
	result.word = 0
	status := hostGetShared(start(key), length(key), &result.data, &result.size, &result.word)
	value, err = sharedBuffer.fetch(status)
	return value, result.word, err
}

// SetShared stores a copy of value. cas 0 overwrites; another number must equal
// the present one, or nothing changes and types.ErrorStatusCasMismatch is
// returned; on an absent key every number is accepted. There is no removal.
func SetShared(key, value []byte, cas uint32) error {
	return check(hostSetShared(start(key), length(key), start(value), length(value), cas))
}

// RegisterQueue opens a shared queue under the VM's id and makes this plugin in
// this VM the one that hears of its items: the last to register wins.
func RegisterQueue(name string) (queue uint32, err error) {
	err = check(hostRegisterQueue(name, &result.word))
	return result.word, err
}

// ResolveQueue finds a queue that a VM with the given id has registered.
func ResolveQueue(vmID, name string) (queue uint32, err error) {
	err = check(hostResolveQueue(vmID, name, &result.word))
	return result.word, err
}

// Enqueue appends a copy of item. Queues have no bound.
func Enqueue(queue uint32, item []byte) error {
	return check(hostEnqueue(queue, start(item), length(item)))
}

// Dequeue takes the oldest item; an empty queue gives types.ErrorStatusEmpty.
// The item is valid until the next call of Dequeue.
func Dequeue(queue uint32) ([]byte, error) {
	queueBuffer.expect()
	return queueBuffer.fetch(hostDequeue(queue, &result.data, &result.size))
}

// DefineMetric finds or makes a metric. Metrics of one name are one metric in all
// VMs; Envoy shows it under "wasmcustom." and the name.
func DefineMetric(kind MetricType, name string) (metric uint32, err error) {
	err = check(hostDefineMetric(uint32(kind), name, &result.word))
	return result.word, err
}

// IncrementMetric adds to a counter (at least 1) or a gauge.
func IncrementMetric(metric uint32, delta int64) error {
	return check(hostIncrementMetric(metric, delta))
}

// RecordMetric sets a gauge or adds a value to a histogram.
func RecordMetric(metric uint32, value uint64) error {
	return check(hostRecordMetric(metric, value))
}

// Metric reads a counter or a gauge.
func Metric(metric uint32) (uint64, error) {
	result.wide = 0
	err := check(hostGetMetric(metric, &result.wide))
	return result.wide, err
}

// CallForeign calls a function of the host by name. Its result is valid until
// the next call of CallForeign.
func CallForeign(name string, arguments []byte) ([]byte, error) {
	foreignBuffer.expect()
	status := hostCallForeign(name, start(arguments), length(arguments), &result.data, &result.size)
	return foreignBuffer.fetch(status)
}

// HTTPCall sends a request to a cluster and names the call that OnHTTPCallResponse
// of this plugin will end. headers need :method, :path and :authority; the
// answer is collected whole before it is delivered. A timeout of 0 means none.
// An unknown cluster is types.ErrorStatusBadArgument.
func HTTPCall(cluster string, headers *Encoder, body []byte, trailers *Encoder, timeoutMillis uint32) (call uint32, err error) {
	head, err := headers.Bytes()
	if err != nil {
		return 0, err
	}
	tail, err := trailers.Bytes()
	if err != nil {
		return 0, err
	}
	err = check(hostHTTPCall(cluster, start(head), length(head), start(body), length(body),
		start(tail), length(tail), timeoutMillis, &result.word))
	return result.word, err
}
