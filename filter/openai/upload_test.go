package openai

import (
	"bytes"
	"mime/multipart"
	"strings"
	"testing"
)

func TestBoundary(t *testing.T) {
	f := func(contentType, want string) {
		t.Helper()
		if got := Boundary([]byte(contentType)); string(got) != want {
			t.Errorf("%s: %q, want %q", contentType, got, want)
		}
	}
	f(`multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxk`, "----WebKitFormBoundary7MA4YWxk")
	f(`Multipart/Form-Data;charset=utf-8 ;Boundary="a b;c"; x=y`, "a b;c")
	f(`multipart/form-data;boundary = x `, "x")
	f(`multipart/form-data; boundary=`+strings.Repeat("b", 70), strings.Repeat("b", 70))
	f(`multipart/form-data; boundary=`+strings.Repeat("b", 71), "")
	f(`multipart/form-data; boundary=`, "")
	f(`multipart/form-data; boundary=""`, "")
	f(`multipart/form-data; boundary="x`, "x")
	f(`multipart/form-data; boundary`, "")
	f(`multipart/form-data`, "")
	f(`multipart/form-data;;;=`, "")
	f(`multipart/mixed; boundary=x`, "")
	f(`application/json`, "")
	f(``, "")
}

// scanForm scans a form in pieces of at most size bytes.
func scanForm(s *Scanner, boundary string, body []byte, size int) {
	s.ResetForm([]byte(boundary), &record{})
	for len(body) > size {
		s.Write(body[:size])
		body = body[size:]
	}
	s.Write(body)
	s.Close()
}

func field(name, value string) string {
	return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
}

const recording = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"name=model.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF\r\n--\r\n--a\r\r\n-\n\x00\r\n"

func TestForm(t *testing.T) {
	f := func(body, model string, stream bool, want Fault) {
		t.Helper()
		for size := 1; size <= len(body)+1; size++ {
			var s Scanner
			scanForm(&s, "b", []byte(body), size)
			r := &s.req
			if string(r.Model.Bytes()) != model || r.Stream != stream || r.Malformed.Fault != want || r.BodyBytes != int64(len(body)) {
				t.Fatalf("%q in pieces of %d: model %q, stream %v, %v", body, size, r.Model.Bytes(), r.Stream, r.Malformed)
			}
			if r.Model.Present() && body[r.ModelAt:r.ModelEnd] != model {
				t.Fatalf("%q: model from %d to %d", body, r.ModelAt, r.ModelEnd)
			}
			if !r.Model.Present() && (r.ModelAt != -1 || r.ModelEnd != -1) {
				t.Fatalf("%q: no model, but one at %d", body, r.ModelAt)
			}
		}
	}
	f(recording+field("model", "org/whisper")+field("stream", "True")+"--b--\r\n", "org/whisper", true, NoFault)
	f(field("model", "whisper é \"1\"")+recording+"--b--", "whisper é \"1\"", false, NoFault)
	f(field("model", "a")+field("model", "b")+"--b--", "b", false, NoFault)
	f(field("model", "a\r\nb\r")+"--b--", "a\r\nb\r", false, NoFault)
	f(field("model", "")+field("stream", "0")+"--b--", "", false, NoFault)
	f("a preamble\r\n--b\r\nCONTENT-DISPOSITION :form-data ; x=y; NAME=model\r\nX: y\r\n\r\nm\r\n--b  \r\n\r\nno head\r\n--b--an epilogue\r\n--b\r\n", "m", false, NoFault)
	f("--b\nContent-Disposition: form-data; name=\"model\"\n\nm\r\n--b--", "m", false, NoFault)
	f("--b\r\nContent-Disposition: form-data; name=\"model\"; filename=\"f\"\r\n\r\nm\r\n--b--", "", false, NoFault)
	f("--b\r\nContent-Disposition: form-data; filename*=UTF-8''f; name=\"model\"\r\n\r\nm\r\n--b--", "", false, NoFault)
	f("--b\r\nX-Long: "+strings.Repeat("x", 600)+"\r\nContent-Disposition: form-data; name=model\r\n\r\nm\r\n--b--", "m", false, NoFault)
	f(field("model", "m")+recording, "m", false, Truncated)
	f(field("model", "m")+"--b-", "m", false, Truncated)
	f(field("model", "m")+"--b-x\r\n\r\n", "m", false, Truncated)
	f("--b\r\nContent-Disposition: form-data; name=model\r\n\r\nno end", "", false, Truncated)
	f(`{"model":"m"}`, "", false, Truncated)
	f("", "", false, Empty)
}

func TestLongFields(t *testing.T) {
	for _, size := range []int{1, 100, 1 << 20} {
		var s Scanner
		scanForm(&s, "b", []byte(field("model", strings.Repeat("m", 257))+field("user", strings.Repeat("u", 256))+"--b--"), size)
		if r := &s.req; !r.Model.TooLong() || len(r.User.Bytes()) != 256 {
			t.Errorf("in pieces of %d: too long %v, user of %d bytes", size, r.Model.TooLong(), len(r.User.Bytes()))
		}
	}
}

// A form does not change how the next body is read.
func TestFormThenJSON(t *testing.T) {
	var s Scanner
	scanForm(&s, "b", []byte(field("model", "m")), 5)
	scan(&s, Chat, []byte(`{"model":"n","messages":[]}`), 5)
	if s.req.Malformed.Fault != NoFault || string(s.req.Model.Bytes()) != "n" {
		t.Errorf("%v, model %q", s.req.Malformed, s.req.Model.Bytes())
	}
}

func TestFormMakesNoGarbage(t *testing.T) {
	body := []byte(recording + field("model", "whisper") + field("stream", "true") + "--b--")
	contentType := []byte(`multipart/form-data; boundary="b"`)
	var s Scanner
	sink := &record{}
	if n := testing.AllocsPerRun(10, func() {
		s.ResetForm(Boundary(contentType), sink)
		s.Write(body)
		s.Close()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzForm writes a form as mime/multipart does and reads it at a cut.
func FuzzForm(f *testing.F) {
	f.Add("b", "whisper", []byte("RIFF\r\n--b"), true, 40)
	f.Add("a'()+_,-./:=?", "org/m \r\n--", []byte("\r\r\n-\r\n--a"), false, 3)
	f.Add(strings.Repeat("x", 70), "", []byte{}, true, 0)
	f.Fuzz(func(t *testing.T, boundary, model string, file []byte, fileFirst bool, cut int) {
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		if w.SetBoundary(boundary) != nil || strings.HasSuffix(boundary, " ") || strings.ContainsAny(boundary, "\r\n") {
			return
		}
		if mark := "\r\n--" + boundary; strings.Contains("\r\n"+model+"\r\n", mark) || strings.Contains("\r\n"+string(file)+"\r\n", mark) {
			return
		}
		writeFile := func() {
			part, _ := w.CreateFormFile("file", "model.wav")
			_, _ = part.Write(file)
		}
		if fileFirst {
			writeFile()
		}
		_ = w.WriteField("model", model)
		if !fileFirst {
			writeFile()
		}
		_ = w.Close()
		b := body.Bytes()
		cut = max(0, min(cut, len(b)))
		var s Scanner
		s.ResetForm(Boundary([]byte(w.FormDataContentType())), &record{})
		s.Write(b[:cut])
		s.Write(b[cut:])
		bad, r := s.Close(), &s.req
		if bad.Fault != NoFault || !r.Model.Present() || string(b[r.ModelAt:r.ModelEnd]) != model {
			t.Fatalf("%q: %v, model from %d to %d", b, bad, r.ModelAt, r.ModelEnd)
		}
		if len(model) <= maxName && string(r.Model.Bytes()) != model || len(model) > maxName && !r.Model.TooLong() {
			t.Fatalf("model %q, want %q", r.Model.Bytes(), model)
		}
	})
}

// FuzzFormBytes feeds what may be no form at all, whole and in two pieces.
func FuzzFormBytes(f *testing.F) {
	f.Add("b", []byte(recording+field("model", "m")+"--b--"), 9)
	f.Add("\r\n", []byte("\r\n--\r\n\n\r\r\n"), 3)
	f.Fuzz(func(t *testing.T, boundary string, body []byte, cut int) {
		if len(boundary) == 0 || len(boundary) > maxBoundary || cut < 0 || cut > len(body) || strings.Contains(boundary, "\r") {
			return
		}
		var whole, pieces Scanner
		scanForm(&whole, boundary, body, len(body)+1)
		pieces.ResetForm([]byte(boundary), &record{})
		pieces.Write(body[:cut])
		pieces.Write(body[cut:])
		pieces.Close()
		if whole.req.Malformed != pieces.req.Malformed || whole.req.Stream != pieces.req.Stream || whole.req.ModelAt != pieces.req.ModelAt ||
			whole.req.ModelEnd != pieces.req.ModelEnd || !bytes.Equal(whole.req.Model.Bytes(), pieces.req.Model.Bytes()) {
			t.Fatalf("%q cut at %d: %+v and %+v", body, cut, whole.req, pieces.req)
		}
	})
}
