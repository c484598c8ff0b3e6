package wire

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strconv"
	"strings"

	"github.com/warmlane/warmlane/examples/replica/engine"
)

// transcription is the dialect of /v1/audio/transcriptions: words that have
// nothing to do with what is heard. Streams are not offered.
type transcription struct{ seconds int }

// audioRate is how many bytes make a second: 16 kHz, 16 bits.
const audioRate = 32000

func (s *Server) transcriptions(x *exchange) {
	d := &transcription{}
	x.generate(d, func() (*call, *apiError) { return d.decode(x) })
}

// decode reads a form. The audio is part of the prompt, as a few tokens that
// stand for it, and so is the text that the client gives as a prompt.
func (d *transcription) decode(x *exchange) (*call, *apiError) {
	fields, file, err := form(x.r.Header.Get("Content-Type"), x.body)
	switch {
	case err != nil:
		return nil, &apiError{400, badBody, "There was an error parsing the body", ""}
	case file == nil:
		return nil, invalid([]problem{{kind: "missing", loc: "body.file", msg: "Field required", input: "None"}})
	case fields["stream"] == "true":
		return nil, badRequest("transcriptions are not streamed here", "stream")
	}
	d.seconds = (len(file) + audioRate - 1) / audioRate
	c := &call{model: fields["model"], copies: 1, messages: []engine.Message{{
		Role: "audio", Parts: []engine.Part{{Opaque: file}, {Text: fields["language"]}, {Text: fields["prompt"]}},
	}}}
	x.entry.Model = c.model
	return c, nil
}

// form reads the parts of a multipart body: the fields, of two equal ones the
// last, and the file, nil if there is none.
func form(contentType string, body []byte) (fields map[string]string, file []byte, err error) {
	media, parameters, err := mime.ParseMediaType(contentType)
	if err != nil || media != "multipart/form-data" {
		return nil, nil, errors.New("no form")
	}
	fields = map[string]string{}
	for in := multipart.NewReader(bytes.NewReader(body), parameters["boundary"]); ; {
		part, err := in.NextPart()
		if err == io.EOF {
			return fields, file, nil
		}
		if err != nil {
			return nil, nil, err
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return nil, nil, err
		}
		if part.FormName() == "file" {
			file = append([]byte{}, value...)
		} else {
			fields[part.FormName()] = string(value)
		}
	}
}

func (*transcription) prefix() string { return "trsc-" }

func (d *transcription) whole(b []byte, _ *generation, choices []choice) []byte {
	text := strings.TrimSpace(string(choices[0].text))
	b = appendJSON(append(b, `{"text":`...), text)
	b = strconv.AppendInt(append(b, `,"usage":{"type":"duration","seconds":`...), int64(d.seconds), 10)
	return append(b, `}}`...)
}
