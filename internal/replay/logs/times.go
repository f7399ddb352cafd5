package logs

import (
	"bytes"
	"math"
	"strconv"
	"time"
)

// parseTime reads a moment in any of the forms that logs have, as nanoseconds since 1970: a number of
// seconds, milliseconds, microseconds or nanoseconds, RFC 3339 and its relatives with a blank in place
// of the T or slashes in place of the hyphens, and 20/Nov/2026:14:03:07 +0100. A time without a zone is
// in UTC.
func parseTime(v []byte) (nanos int64, ok bool) {
	if len(v) >= 2 && v[0] == '[' && v[len(v)-1] == ']' {
		v = v[1 : len(v)-1]
	}
	switch {
	case len(v) >= 20 && v[2] == '/' && v[6] == '/':
		return parseCommonTime(v)
	case len(v) >= 19 && (v[4] == '-' && v[7] == '-' || v[4] == '/' && v[7] == '/'):
		return parseISOTime(v)
	}
	return parseUnixTime(v)
}

// parseUnixTime reads a number whose unit is known by its size: as seconds it would be far away.
func parseUnixTime(v []byte) (nanos int64, ok bool) {
	whole := 0
	for whole < len(v) && v[whole]-'0' <= 9 {
		whole++
	}
	switch {
	case whole == 0:
		return 0, false
	case whole <= 10:
		return parseDecimal(v, time.Second)
	case whole <= 13:
		return parseDecimal(v, time.Millisecond)
	case whole <= 16:
		return parseDecimal(v, time.Microsecond)
	default:
		return parseDecimal(v, time.Nanosecond)
	}
}

// parseISOTime reads 2026-11-20T14:03:07.123+01:00: the T may be a blank, the hyphens slashes, the
// point a comma, and the zone may have no colon.
func parseISOTime(v []byte) (nanos int64, ok bool) {
	year, ok1 := digits(v[:4])
	month, ok2 := digits(v[5:7])
	day, ok3 := digits(v[8:10])
	if !ok1 || !ok2 || !ok3 || v[10] != 'T' && v[10] != ' ' && v[10] != 't' {
		return 0, false
	}
	return parseClock(v[11:], year, month, day)
}

// parseCommonTime reads 20/Nov/2026:14:03:07 +0100.
func parseCommonTime(v []byte) (nanos int64, ok bool) {
	day, ok1 := digits(v[:2])
	year, ok2 := digits(v[7:11])
	const months = "JanFebMarAprMayJunJulAugSepOctNovDec"
	month := bytes.Index([]byte(months), v[3:6])
	if !ok1 || !ok2 || month < 0 || month%3 != 0 || v[11] != ':' {
		return 0, false
	}
	return parseClock(v[12:], year, month/3+1, day)
}

// parseClock reads 14:03:07, perhaps with a fraction and a zone, on a day.
func parseClock(v []byte, year, month, day int) (nanos int64, ok bool) {
	if len(v) < 8 || v[2] != ':' || v[5] != ':' {
		return 0, false
	}
	hour, ok1 := digits(v[:2])
	minute, ok2 := digits(v[3:5])
	second, ok3 := digits(v[6:8])
	if !ok1 || !ok2 || !ok3 || year < 1970 || year > 2261 || month < 1 || month > 12 || day < 1 || day > 28 && day > daysIn(year, month) || hour > 23 || minute > 59 || second > 60 {
		return 0, false
	}
	v = v[8:]
	fraction := 0
	if len(v) > 0 && (v[0] == '.' || v[0] == ',') {
		v = v[1:]
		unit := int(time.Second)
		for len(v) > 0 && v[0]-'0' <= 9 {
			unit /= 10
			fraction += int(v[0]-'0') * unit
			v = v[1:]
		}
	}
	east, ok := parseZone(bytes.TrimLeft(v, " "))
	if !ok {
		return 0, false
	}
	seconds := (daysSince1970(year, month, day)*24+int64(hour))*3600 + int64(minute)*60 + int64(second) - int64(east)
	return seconds*int64(time.Second) + int64(fraction), true
}

// daysIn returns how many days a month has.
func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// parseZone reads Z, +0100 or +01:00, and "" for UTC.
func parseZone(v []byte) (east int, ok bool) {
	switch {
	case len(v) == 0, len(v) == 1 && v[0]|0x20 == 'z', string(v) == "UTC", string(v) == "GMT":
		return 0, true
	case len(v) == 6 && v[3] == ':':
		v = append(append(make([]byte, 0, 5), v[:3]...), v[4:]...)
	}
	if len(v) != 5 || v[0] != '+' && v[0] != '-' {
		return 0, false
	}
	hours, ok1 := digits(v[1:3])
	minutes, ok2 := digits(v[3:5])
	east = (hours*60 + minutes) * 60
	if v[0] == '-' {
		east = -east
	}
	return east, ok1 && ok2
}

// daysSince1970 counts days of the Gregorian calendar. The year of the formula begins in March, so that
// the leap day is its last.
func daysSince1970(year, month, day int) int64 {
	if month <= 2 {
		year, month = year-1, month+12
	}
	return int64(365*year + year/4 - year/100 + year/400 + (153*(month-3)+2)/5 + day - 719469)
}

func digits(v []byte) (n int, ok bool) {
	for _, c := range v {
		if c-'0' > 9 {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// parseDecimal reads a number of units as nanoseconds. What is smaller is cut off.
func parseDecimal(v []byte, unit time.Duration) (nanos int64, ok bool) {
	digits, negative := v, false
	if len(v) > 0 && v[0] == '-' {
		digits, negative = v[1:], true
	}
	whole, scale, point := int64(0), int64(unit), false
	fraction, most := int64(0), (math.MaxInt64/int64(unit)-10)/10
	for i, c := range digits {
		switch {
		case c-'0' <= 9 && !point:
			if whole > most {
				return 0, false
			}
			whole = whole*10 + int64(c-'0')
		case c-'0' <= 9:
			scale /= 10
			fraction += int64(c-'0') * scale
		case c == '.' && !point && i > 0:
			point = true
		case c|0x20 == 'e':
			f, err := strconv.ParseFloat(string(v), 64)
			f *= float64(unit)
			return int64(f), err == nil && math.Abs(f) < math.MaxInt64
		default:
			return 0, false
		}
	}
	if nanos = whole*int64(unit) + fraction; negative {
		nanos = -nanos
	}
	return nanos, len(digits) > 0
}
