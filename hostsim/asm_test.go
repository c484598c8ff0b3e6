package hostsim

import (
	"encoding/binary"
	"strings"
)

// asm writes small Wasm modules, for guests that no compiler would make.
type asm struct {
	imports []asmFunc
	funcs   []asmFunc
	memory  bool
}

// asmFunc is an import "module.name" or an exported function with its code.
type asmFunc struct {
	name      string
	signature string // as in hostFunc
	code      []byte // without the closing end
}

// minimal is a module that loads: a marker, an allocator that fails, memory.
func minimal() *asm {
	a := &asm{memory: true}
	a.export("proxy_abi_version_0_2_1", ":")
	a.export("malloc", "i:i", i32Const(0)...)
	return a
}

func (a *asm) export(name, signature string, code ...byte) {
	a.funcs = append(a.funcs, asmFunc{name, signature, code})
}

// imported declares an import and returns its index. All imports come first.
func (a *asm) imported(name, signature string) uint32 {
	a.imports = append(a.imports, asmFunc{name: name, signature: signature})
	return uint32(len(a.imports) - 1)
}

const (
	opUnreachable = 0x00
	opDrop        = 0x1a
	opI64Store    = 0x37
)

func call(index uint32) []byte { return append([]byte{0x10}, uleb(index)...) }

// i32Const is for small and for all-ones values.
func i32Const(n int64) []byte { return append([]byte{0x41}, sleb(n)...) }
func i64Const(n int64) []byte { return append([]byte{0x42}, sleb(n)...) }

func (a *asm) bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	all := append(append([]asmFunc(nil), a.imports...), a.funcs...)
	var types, imports, functions, exports, codes [][]byte
	for i, f := range all {
		types = append(types, funcType(f.signature))
		if i < len(a.imports) {
			module, name, _ := strings.Cut(f.name, ".")
			imports = append(imports, append(append(named(module), named(name)...), append([]byte{0}, uleb(uint32(i))...)...))
			continue
		}
		functions = append(functions, uleb(uint32(i)))
		exports = append(exports, append(append(named(f.name), 0), uleb(uint32(i))...))
		codes = append(codes, sized(append(append([]byte{0}, f.code...), 0x0b)))
	}
	out = append(out, section(1, types)...)
	out = append(out, section(2, imports)...)
	out = append(out, section(3, functions)...)
	if a.memory {
		out = append(out, section(5, [][]byte{{0, 1}})...)
		exports = append(exports, append(named("memory"), 2, 0))
	}
	out = append(out, section(7, exports)...)
	return append(out, section(10, codes)...)
}

func funcType(signature string) []byte {
	params, results, _ := strings.Cut(signature, ":")
	return append(append([]byte{0x60}, valTypes(params)...), valTypes(results)...)
}

func valTypes(letters string) []byte {
	out := uleb(uint32(len(letters)))
	for _, l := range letters {
		out = append(out, map[rune]byte{'i': 0x7f, 'I': 0x7e, 'f': 0x7d, 'F': 0x7c}[l])
	}
	return out
}

func section(id byte, items [][]byte) []byte {
	if len(items) == 0 {
		return nil
	}
	body := uleb(uint32(len(items)))
	for _, i := range items {
		body = append(body, i...)
	}
	return append([]byte{id}, sized(body)...)
}

func named(s string) []byte { return sized([]byte(s)) }

func sized(b []byte) []byte { return append(uleb(uint32(len(b))), b...) }

func uleb(n uint32) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func sleb(n int64) []byte {
	var out []byte
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if (n == 0 && b&0x40 == 0) || (n == -1 && b&0x40 != 0) {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}
