package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/warmlane/warmlane/examples/internal/load"
)

// chapter is one request of the conversation that is followed.
type chapter struct{ load.Outcome }

// printStory tells where the requests of one conversation went. The reasons come with the answer, in the header
// x-warmlane-decision, because the client asked for them with x-warmlane-explain: 1.
func printStory(out io.Writer, story []chapter) {
	fmt.Fprintf(out, "\nOne conversation with Warmlane, as the client may see it (x-warmlane-decision):\n")
	for turn, c := range story {
		d := parseDictionary(c.Decision)
		fmt.Fprintf(out, "  turn %2d: %-16s because %-22s %5s of %5s prompt tokens expected there, %4d of %4d found, TTFT %.3f s\n",
			turn+1, d["replica"], d["branch"]+",", d["matched"], d["prompt"], c.Usage.Cached, c.Usage.Prompt, c.TTFT.Seconds())
	}
}

// parseDictionary reads the plain members of an RFC 9651 dictionary, such as branch=kv_hit, replica="10.0.0.7:8000". A member
// without a value is "true". Nothing that the filter sends has a comma inside of a string.
func parseDictionary(header string) map[string]string {
	d := map[string]string{}
	for member := range strings.SplitSeq(header, ",") {
		key, value, valued := strings.Cut(strings.TrimSpace(member), "=")
		if !valued {
			value = "true"
		}
		if key != "" {
			d[key] = strings.Trim(value, `"`)
		}
	}
	return d
}
