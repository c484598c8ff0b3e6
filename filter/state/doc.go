// Package state is what control tells the filter: which replicas there are,
// what each serves and how loaded it is. It holds the types ([Snapshot]), their
// form on the wire, and the [View] that folds what arrives into whole states.
//
// # How it travels
//
// The filter asks for [Request.Path] and names the state it holds by epoch
// (which control instance) and generation (which of its states). Control
// answers 200 with a page as soon as it has something newer, or 204 without a
// body after a while when there is nothing: the state held is still the newest.
// If control knows the state held, the answer is a delta from it; if not
// (another epoch, too old, or 0), the whole. Whole and delta alike are cut into
// pages of at most [MaxPage] bytes; while a page says that more follow, the
// filter asks for the next by its number.
//
// A whole is the delta from nothing, so both have one form and one decoder. A
// snapshot in shared data is a whole as one page of any size.
//
// Records of the KV index travel in the same pages but are no part of a
// snapshot: a [View] hands them on as they come ([Records]). There are far too
// many of them to be compared or copied as a whole. A delta has every record
// that changed in between, also one that came and went: a reader may have taken
// a part of an earlier answer.
//
// # The form, version 1
//
// A page begins with 36 bytes, numbers little-endian:
//
//	0   "WLS"
//	3   major version, 1
//	4   epoch, 8 bytes
//	12  from generation, 8 bytes; 0 = this is a whole
//	20  to generation, 8 bytes, greater than from
//	28  number of the page, 4 bytes, from 0
//	32  flags, 4 bytes; bit 0 = another page follows; the rest is ignored
//
// Fields follow to the end of the page, in the encoding of Protocol Buffers:
// a varint key (field number<<3 | wire type), then a varint (type 0), 8 bytes
// (1), a varint length and bytes (2) or 4 bytes (5). A field whose number or
// type is not listed here is skipped.
//
//	1  pool       record; the replicas that follow belong to it
//	                1  name       bytes, first in the record
//	                2  models     list of names
//	                3  removed    bytes: slots as varints, ascending
//	2  replica    record
//	                1  slot       varint, first in the record, at most 65535
//	                2  incarnation varint; 0 = not known
//	                3  address    bytes; must be there in a new replica
//	                4  health     varint: 0 unknown 1 healthy 2 unhealthy 3 draining
//	                5  models     list of names
//	                6  adapters   list of records: 1 name bytes, 2 state varint
//	                                (0 unknown 1 loaded 2 loading 3 failed)
//	                7  load       record: 1 time (varint, Unix ms), 2 waiting and
//	                                3 running (varints), 4 kv, 5 hit, 6 rps and
//	                                7 tps (floats); what is not known is left out
//	                8  block size varint, tokens; 0 = not known
//	                9  cache      varint, tokens; 0 = not known
//	               10  rate       float, tokens per second; 0 = not known
//	               11  KV         varint: 0 none 1 partial 2 complete
//	               12  tags       varint: 1 = its KV events carry session tags
//	3  dropped    bytes: name of a pool that is gone
//	8  KV record  record; it belongs to the pool record before it
//	                1  id         8 bytes, first in the record; one without is skipped
//	                2  payload    bytes; left out = there is no such record any more
//	9  kept for quotas, 10 for configuration
//
// A list is a varint n+1 and then n items, each a varint length and bytes; n+1
// = 0 is the list that is not known. A float is an IEEE 754 single; one that is
// negative, infinite or NaN is not known. Pools come in the ascending order of
// their names (bytes), dropped ones among them, the replicas of a pool in that
// of their slots, its KV records after them in any order. A page that continues
// a pool begins with its pool record again, which then holds the name alone.
//
// # Absent, empty, unchanged
//
// For a pool or a replica that the receiver has, a field that is left out is
// unchanged. For one that it does not have, it is not known: lists are nil,
// counts -1, ratios NaN, numbers 0. "Not known any more" is sent as such (list
// 0, number 0, a load without the field); a load is always sent as a whole. An
// empty list is one of no items, sent as n+1 = 1. A replica that another one
// follows in the same slot is sent with all that differs, address and
// incarnation among it.
//
// # Versions
//
// The major version changes when an old reader would misread; a reader refuses
// one that it does not know ([ErrVersion]) and keeps the state it has. New
// fields do not change it. testdata/v1 holds pages that version 1 must read and
// write for ever.
//
//	2026-11-30  1  first version
//	2026-11-30  1  page field 8, KV records; replica fields 11 and 12
package state
