package state

import (
	"errors"
	"strconv"
)

var (
	// ErrGap says that a page does not follow what the view holds: another
	// epoch, another generation or a page out of turn. Ask for the whole.
	ErrGap = errors.New("state: page does not follow the state held")

	// ErrVersion says that the bytes carry another major version than
	// [Version]. Asking again does not help; the other side must be changed.
	ErrVersion = errors.New("state: unknown major version")

	// ErrCorrupt is what every [*CorruptError] is.
	ErrCorrupt = errors.New("state: corrupt")
)

// CorruptError says what is wrong with a page and where.
type CorruptError struct {
	Offset int    // of the byte at which reading stopped
	What   string // what was found there
}

func (e *CorruptError) Error() string {
	return "state: corrupt at byte " + strconv.Itoa(e.Offset) + ": " + e.What
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
