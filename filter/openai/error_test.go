package openai

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAppendError(t *testing.T) {
	f := func(status int, message, kind, param, code, want string) {
		t.Helper()
		if got := string(AppendError([]byte("x"), status, message, kind, param, code)); got != "x"+want {
			t.Errorf("got  %s\nwant x%s", got, want)
		}
	}
	f(429, "too many", "", "", "", `{"error":{"message":"too many","type":"rate_limit_error","param":null,"code":429}}`)
	f(404, "no model", "", "model", "model_not_found", `{"error":{"message":"no model","type":"not_found_error","param":"model","code":"model_not_found"}}`)
	f(400, "a\"b\\\n", "", "", "", `{"error":{"message":"a\"b\\\u000a","type":"invalid_request_error","param":null,"code":400}}`)
	f(401, "", "", "", "", `{"error":{"message":"","type":"authentication_error","param":null,"code":401}}`)
	f(403, "", "", "", "", `{"error":{"message":"","type":"authentication_error","param":null,"code":403}}`)
	f(500, "", "", "", "", `{"error":{"message":"","type":"server_error","param":null,"code":500}}`)
	f(503, "é模", "overloaded_error", "", "", `{"error":{"message":"é模","type":"overloaded_error","param":null,"code":503}}`)
}

func TestAppendErrorIsAlwaysJSON(t *testing.T) {
	var all strings.Builder
	for c := range 256 {
		all.WriteByte(byte(c))
	}
	body := AppendError(nil, 500, all.String(), all.String(), all.String(), all.String())
	var got struct{ Error struct{ Message string } }
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if want := strings.ToValidUTF8(all.String(), "\xff"); len([]rune(got.Error.Message)) != 256 {
		t.Errorf("message %q, want the characters of %q", got.Error.Message, want)
	}
}
