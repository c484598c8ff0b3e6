package hostsim

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// maxMemoryPages is the host's cap on a VM's memory: 1 GiB in pages of 64 KiB.
const maxMemoryPages = 1 << 14

// codeCache keeps compiled code for the whole process: a test binary that
// hosts the same module in many tests compiles it once.
var codeCache = sync.OnceValue(wazero.NewCompilationCache)

// module is a guest's code, compiled and checked, ready to be instantiated
// any number of times.
type module struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	minor    int // 0 for ABI 0.2.0, 1 for 0.2.1
	features features
}

func loadModule(ctx context.Context, code []byte, f features) (*module, error) {
	config := wazero.NewRuntimeConfig().
		WithCompilationCache(codeCache()).
		WithMemoryLimitPages(maxMemoryPages)
	m := &module{runtime: wazero.NewRuntimeWithConfig(ctx, config), features: f}
	if err := m.prepare(ctx, code); err != nil {
		return nil, errors.Join(err, m.runtime.Close(ctx))
	}
	return m, nil
}

func (m *module) prepare(ctx context.Context, code []byte) error {
	var err error
	if m.compiled, err = m.runtime.CompileModule(ctx, code); err != nil {
		return fmt.Errorf("compile module: %w", err)
	}
	if m.minor, err = abiMinor(m.compiled); err != nil {
		return err
	}
	if err := m.checkExports(); err != nil {
		return err
	}
	table := importTable(m.features, m.minor)
	if err := checkImports(m.compiled, table, m.features.version); err != nil {
		return err
	}
	return bindImports(ctx, m.runtime, table)
}

// abiMinor tells the ABI from the marker a module exports.
func abiMinor(c wazero.CompiledModule) (int, error) {
	exports := c.ExportedFunctions()
	for minor, marker := range []string{"proxy_abi_version_0_2_0", "proxy_abi_version_0_2_1"} {
		if _, ok := exports[marker]; ok {
			return minor, nil
		}
	}
	if _, ok := exports["proxy_abi_version_0_1_0"]; ok {
		return 0, errors.New("module uses Proxy-Wasm ABI 0.1.0: hostsim has 0.2.0 and 0.2.1")
	}
	return 0, errors.New("module exports no proxy_abi_version_0_2_0 or _0_2_1: missing or unknown Proxy-Wasm ABI version")
}

// checkExports refuses what the real host cannot use: no memory, no allocator,
// or a known callback with another signature.
func (m *module) checkExports() error {
	exports := m.compiled.ExportedFunctions()
	if len(m.compiled.ExportedMemories()) == 0 {
		return errors.New("module exports no memory")
	}
	if exports["malloc"] == nil && exports["proxy_on_memory_allocate"] == nil {
		return errors.New("module exports neither malloc nor proxy_on_memory_allocate")
	}
	for name, want := range callbackSignatures {
		def, ok := exports[name]
		if !ok {
			continue
		}
		if got := signature(def); got != want {
			return fmt.Errorf("module exports %s as %s: bad function signature, want %s", name, got, want)
		}
	}
	return nil
}

func checkImports(c wazero.CompiledModule, table []hostFunc, version string) error {
	known := make(map[string]string, len(table))
	for _, f := range table {
		known[f.module+"."+f.name] = f.signature
	}
	for _, def := range c.ImportedFunctions() {
		mod, name, _ := def.Import()
		want, ok := known[mod+"."+name]
		if !ok {
			return fmt.Errorf("module imports %s.%s: missing import, Envoy %s does not provide it", mod, name, version)
		}
		if got := signature(def); got != want {
			return fmt.Errorf("module imports %s.%s as %s: Envoy has %s", mod, name, got, want)
		}
	}
	return nil
}

// signature writes a function's type as "iiI:i": i for 32, I for 64 bits.
func signature(def api.FunctionDefinition) string {
	return letters(def.ParamTypes()) + ":" + letters(def.ResultTypes())
}

func letters(types []api.ValueType) string {
	out := make([]byte, len(types))
	for i, t := range types {
		out[i] = map[api.ValueType]byte{api.ValueTypeI32: 'i', api.ValueTypeI64: 'I',
			api.ValueTypeF32: 'f', api.ValueTypeF64: 'F'}[t]
		if out[i] == 0 {
			out[i] = '?'
		}
	}
	return string(out)
}
