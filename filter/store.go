//go:build wasip1

package main

import (
	"errors"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/warmlane/warmlane/filter/abi"
	"github.com/warmlane/warmlane/filter/shared"
)

// store is the host's shared data as the core knows it.
type store struct {
	sets uint32
}

func (s *store) Sets() uint32 { return s.sets }

func (*store) Get(key []byte) ([]byte, uint32, error) {
	value, cas, err := abi.Shared(key)
	if errors.Is(err, types.ErrorStatusNotFound) {
		err = shared.ErrNotFound
	}
	return value, cas, err
}

func (s *store) Set(key, value []byte, cas uint32) error {
	err := abi.SetShared(key, value, cas)
	if err == nil {
		s.sets++
	} else if errors.Is(err, types.ErrorStatusCasMismatch) {
		err = shared.ErrCAS
	}
	return err
}
