package wire

import (
	"compress/gzip"
	"net/http"
	"strings"
)

// compress makes the rest of the answer gzip, when that fault is on and the
// client accepts it.
func (x *exchange) compress() {
	if !x.s.cfg.Faults.Get().Gzip || !strings.Contains(x.r.Header.Get("Accept-Encoding"), "gzip") {
		return
	}
	x.w.Header().Set("Content-Encoding", "gzip")
	x.w = &zipped{ResponseWriter: x.w, zip: gzip.NewWriter(x.w)}
}

// zipped compresses what is written through it.
type zipped struct {
	http.ResponseWriter
	zip    *gzip.Writer
	length bool // one piece: the length of the plain body was announced
}

// WriteHeader drops the length of the plain body.
func (z *zipped) WriteHeader(status int) {
	z.length = z.Header().Get("Content-Length") != ""
	z.Header().Del("Content-Length")
	z.ResponseWriter.WriteHeader(status)
}

// Write compresses; a body in one piece is complete with its only write.
func (z *zipped) Write(b []byte) (int, error) {
	n, err := z.zip.Write(b)
	if err == nil && z.length {
		err = z.zip.Close()
	}
	return n, err
}

func (z *zipped) flush() error {
	if err := z.zip.Flush(); err != nil {
		return err
	}
	return http.NewResponseController(z.ResponseWriter).Flush()
}

func (z *zipped) end() error {
	if err := z.zip.Close(); err != nil {
		return err
	}
	return http.NewResponseController(z.ResponseWriter).Flush()
}
