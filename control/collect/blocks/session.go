package blocks

// sessionBytes is the length of a session that is a text key of ours: "wl1-" and
// 16 hexadecimal digits in lower case.
const sessionBytes = 20

// textKey reads the text key out of a request's session; 0: it is none of ours.
func textKey(session []byte) (key uint64) {
	if len(session) != sessionBytes || string(session[:4]) != "wl1-" {
		return 0
	}
	for _, c := range session[4:] {
		switch {
		case '0' <= c && c <= '9':
			key = key<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			key = key<<4 | uint64(c-'a'+10)
		default:
			return 0
		}
	}
	return key
}

// tag remembers that the blocks up to last, which follow start, were stored for
// the prompt whose text key the session is.
func (x *Index) tag(s *slot, session []byte, last blockID) {
	key := textKey(session)
	if key == 0 {
		return
	}
	s.tagged = true
	x.tree.tell(key, last)
}
