package route

// Config are the weights and times of one pool. Start from [Defaults].
type Config struct {
	// Behind (a) weighs a request's own uncached tokens once more, for those
	// who queue behind it. Without it caches fill with copies.
	Behind float32
	// PerRequest (b) is what one request in flight costs, in seconds.
	PerRequest float32
	// Noise is the difference in seconds up to which the costs of replicas
	// that know nothing of a prompt count as equal. Below PerRequest, or a
	// burst of cold prompts herds.
	Noise float32
	// Block is by how many tokens another match must be longer to matter.
	Block uint32
	// StartRate stands in, in tokens per second, until control says or first
	// tokens teach better.
	StartRate float32
	// HalfLifeMS is the age at which a reported load counts half.
	HalfLifeMS int64
	// AvoidMS is how long a replica that failed is passed over.
	AvoidMS int64
	// LeaseMS is how long a worker that shows no sign keeps its seat.
	LeaseMS int64
}

// Defaults are the measured weights and the times that go with a tick of a
// second or less.
func Defaults() Config {
	return Config{
		Behind:     1,
		PerRequest: 0.02,
		Noise:      0.005,
		Block:      64,
		StartRate:  8000,
		HalfLifeMS: 1000,
		AvoidMS:    3000,
		LeaseMS:    10000,
	}
}
