package exchange

// appendTime writes milliseconds since the Unix epoch as RFC 3339 in UTC. It
// is here because package time costs the module its start-up and each line of
// the log a microsecond. The calendar is Howard Hinnant's civil_from_days.
func appendTime(b []byte, ms int64) []byte {
	days, rest := ms/86_400_000, ms%86_400_000
	year, month, day := civil(days)
	b = append(appendDigits(b, year, 4), '-')
	b = append(appendDigits(b, month, 2), '-')
	b = append(appendDigits(b, day, 2), 'T')
	b = append(appendDigits(b, rest/3_600_000, 2), ':')
	b = append(appendDigits(b, rest/60_000%60, 2), ':')
	b = append(appendDigits(b, rest/1000%60, 2), '.')
	return append(appendDigits(b, rest%1000, 3), 'Z')
}

// civil turns days since 1970-01-01, not negative, into a date.
func civil(days int64) (year, month, day int64) {
	z := days + 719_468
	era := z / 146_097
	doe := z % 146_097
	yoe := (doe - doe/1460 + doe/36_524 - doe/146_096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day, month, year = doy-(153*mp+2)/5+1, mp+3, yoe+era*400
	if month > 12 {
		month, year = month-12, year+1
	}
	return year, month, day
}

func appendDigits(b []byte, n int64, width int) []byte {
	at := len(b)
	for range width {
		b = append(b, '0')
	}
	for i := at + width - 1; i >= at; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}
