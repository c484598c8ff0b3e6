package kvindex

import "encoding/binary"

// A bucket of the index holds records, in no order, all numbers little-endian:
//
//	byte  bytes
//	0     4  magic and version
//	4     4  epoch
//	8        entries: id (8), size of the payload (2), payload
const (
	bucketHead  = 8
	entryHead   = 10
	bucketMagic = 'W' | 'L'<<8 | 'N'<<16 | 1<<24
)

// entriesOf returns the entries of a bucket. One that belongs to another epoch
// has none; damaged says that it is not a bucket at all.
func entriesOf(value []byte, epoch uint32) (entries []byte, damaged bool) {
	if len(value) < bucketHead || binary.LittleEndian.Uint32(value) != bucketMagic {
		return nil, true
	}
	if binary.LittleEndian.Uint32(value[4:]) != epoch {
		return nil, false
	}
	return value[bucketHead:], false
}

func appendBucketHead(dst []byte, epoch uint32) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, bucketMagic)
	return binary.LittleEndian.AppendUint32(dst, epoch)
}

// entryAt returns the id of the entry at a place and where it ends; end is 0 if
// there is no whole entry.
func entryAt(entries []byte, at int) (id uint64, end int) {
	if len(entries)-at < entryHead {
		return 0, 0
	}
	head := (*[entryHead]byte)(entries[at:])
	end = at + entryHead + int(binary.LittleEndian.Uint16(head[8:]))
	if end > len(entries) {
		return 0, 0
	}
	return binary.LittleEndian.Uint64(head[:]), end
}

// find returns where the entry of id lies; end is 0 if it is not there.
// Whatever comes after damage is not seen.
func find(entries []byte, id uint64) (at, end int) {
	for at < len(entries) {
		found, end := entryAt(entries, at)
		if end == 0 || found == id {
			return at, end
		}
		at = end
	}
	return 0, 0
}

// payloadOf returns the payload of id, nil if it is not there.
func payloadOf(entries []byte, id uint64) []byte {
	at, end := find(entries, id)
	if end == 0 {
		return nil
	}
	return entries[at+entryHead : end]
}

// whole is how many bytes of entries are whole entries.
func whole(entries []byte) int {
	at := 0
	for {
		_, end := entryAt(entries, at)
		if end == 0 {
			return at
		}
		at = end
	}
}

// remove takes the entry of id out of a bucket, if it is there. A bucket that
// is damaged may have several.
func remove(bucket []byte, id uint64) []byte {
	from := bucketHead
	for {
		at, end := find(bucket[from:], id)
		if end == 0 {
			return bucket
		}
		at, end = from+at, from+end
		bucket = bucket[:at+copy(bucket[at:], bucket[end:])]
		from = at
	}
}

func appendEntry(bucket []byte, id uint64, payload []byte) []byte {
	bucket = binary.LittleEndian.AppendUint64(bucket, id)
	bucket = binary.LittleEndian.AppendUint16(bucket, uint16(len(payload)))
	return append(bucket, payload...)
}
