package rules

import "time"

// ParseTime parses an RFC 3339 time, with an offset or Z, to the nanosecond. A leap second, which only a month in UTC
// can end with, counts as the second after it. time.Parse accepts more than that and no leap seconds, and allocates.
func ParseTime(text string) (time.Time, bool) {
	const seconds, offset = "0000-00-00T00:00:00", "00:00"
	const date = len("0000-00-00")
	if len(text) <= len(seconds) || !shaped(text[:date], seconds[:date]) || text[date] != 'T' && text[date] != 't' ||
		!shaped(text[date+1:len(seconds)], seconds[date+1:]) {
		return time.Time{}, false
	}
	two := func(at int) int { return int(text[at]-'0')*10 + int(text[at+1]-'0') }
	year, month, day, hour, minute, second, nanosecond := two(0)*100+two(2), two(5), two(8), two(11), two(14), two(17), 0
	zone := len(seconds)
	if text[zone] == '.' {
		zone++
		for unit := 100_000_000; zone < len(text) && text[zone] >= '0' && text[zone] <= '9'; unit /= 10 {
			nanosecond += unit * int(text[zone]-'0')
			zone++
		}
		if zone == len(seconds)+1 {
			return time.Time{}, false
		}
	}
	east := 0 // minutes
	if text[zone:] != "Z" && text[zone:] != "z" {
		if len(text) != zone+1+len(offset) || text[zone] != '+' && text[zone] != '-' || !shaped(text[zone+1:], offset) ||
			two(zone+1) > 23 ||
			two(zone+4) > 59 {
			return time.Time{}, false
		}
		east = two(zone+1)*60 + two(zone+4)
		if text[zone] == '-' {
			east = -east
		}
	}
	leap := second == 60
	if leap {
		second--
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, nanosecond, time.UTC)
	if month < 1 || month > 12 || t.Day() != day || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	t = t.Add(-time.Duration(east) * time.Minute)
	if leap {
		t = t.Add(time.Second)
		if t.Day() != 1 || t.Hour() != 0 || t.Minute() != 0 || t.Second() != 0 {
			return time.Time{}, false
		}
	}
	return t, true
}

// shaped reports whether a text has digits where the shape has zeros, and otherwise equals the shape.
func shaped(text, shape string) bool {
	if len(text) != len(shape) {
		return false
	}
	for i := range len(text) {
		if shape[i] == '0' && (text[i] < '0' || text[i] > '9') || shape[i] != '0' && text[i] != shape[i] {
			return false
		}
	}
	return true
}
