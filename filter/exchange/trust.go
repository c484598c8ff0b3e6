package exchange

// trust is how far a replica's index is believed, by what the replica says
// afterwards that it had cached. Only claims of too much count against it: what
// an index does not know yet is found missing all the time.
type trust struct {
	key   uint32  // the life of the replica that this is about
	err   float32 // moving average of the part of the claims that was not there
	at    int64   // of the last sample, ms
	lies  int     // claims that were mostly wrong, less those that were right
	doubt bool    // to be reported
}

const (
	trustShare  = 1.0 / 8 // weight of a sample
	trustFrom   = 0.2     // up to this error a match counts in full ...
	trustNone   = 0.8     // ... and from this on not at all
	trustHalfMS = 30_000  // without samples an error is forgotten by half in this time
	lieShare    = 0.5     // a claim of which this part was not there is a lie
	liesBorne   = 8
)

// weight is what a match at the replica with this key counts, 0 to 1.
func (t *trust) weight(key uint32, now int64) float32 {
	if t.key != key || t.err <= trustFrom {
		return 1
	}
	return min(1, max(0, (trustNone-t.faded(now))/(trustNone-trustFrom)))
}

// faded is the error as far as it is remembered.
func (t *trust) faded(now int64) float32 {
	err := t.err
	for left := now - t.at; left >= trustHalfMS && err > trustFrom/2; left -= trustHalfMS {
		err /= 2
	}
	return err
}

// note compares a claim with what was cached, both in tokens. A block less is no
// error: the last token of a prompt is always computed.
func (t *trust) note(key uint32, claimed, cached, block uint32, now int64) {
	if claimed == 0 {
		return
	}
	if t.key != key {
		*t = trust{key: key}
	}
	missing := float32(0)
	if claimed > cached+block {
		missing = float32(claimed-cached) / float32(claimed)
	}
	err := t.faded(now)
	t.err, t.at = err+(missing-err)*trustShare, now
	if missing < lieShare {
		t.lies = max(t.lies-1, 0)
		return
	}
	if t.lies++; t.lies >= liesBorne {
		t.lies, t.doubt = 0, true
	}
}
