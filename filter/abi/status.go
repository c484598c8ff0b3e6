package abi

import (
	"strconv"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// Status is a host's answer that the Go SDK has no error for. As an error it
// names the number.
type Status uint32

// The statuses without an error in the SDK's types package.
const (
	StatusSerializationFailure Status = 3
	StatusParseFailure         Status = 4 // also: unknown cluster of a gRPC call
	StatusInvalidMemoryAccess  Status = 6
)

// Error implements error.
func (s Status) Error() string {
	switch s {
	case StatusSerializationFailure:
		return "error status returned by host: serialization failure"
	case StatusParseFailure:
		return "error status returned by host: parse failure"
	case StatusInvalidMemoryAccess:
		return "error status returned by host: invalid memory access"
	}
	return "error status returned by host: " + strconv.FormatUint(uint64(s), 10)
}

// check turns a status number into nil, an error of the SDK's types package, or
// a Status. It does not allocate for the numbers of the specification.
func check(status uint32) error {
	switch status {
	case 0:
		return nil
	case 1:
		return types.ErrorStatusNotFound
	case 2:
		return types.ErrorStatusBadArgument
	case 7:
		return types.ErrorStatusEmpty
	case 8:
		return types.ErrorStatusCasMismatch
	case 10:
		return types.ErrorInternalFailure
	case 12:
		return types.ErrorUnimplemented
	}
	return Status(status)
}
