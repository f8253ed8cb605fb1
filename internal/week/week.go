package week

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // for machines without a time zone database
)

// ID is an ISO week: 2026-W48. The zero ID is none.
type ID struct {
	Year, Week int
}

// Parse reads an ISO week as 2026-W48. It returns an error if the year has no such week.
func Parse(text string) (ID, error) {
	var id ID
	bad := fmt.Errorf("week %q: write an ISO week with its year, as in 2026-W48", text)
	if len(text) != len("2026-W48") || text[4:6] != "-W" {
		return ID{}, bad
	}
	for i, c := range []byte(text) {
		switch {
		case i == 4 || i == 5:
		case c < '0' || c > '9':
			return ID{}, bad
		case i < 4:
			id.Year = id.Year*10 + int(c-'0')
		default:
			id.Week = id.Week*10 + int(c-'0')
		}
	}
	if id.Year < 1 {
		return ID{}, bad
	}
	if last := weeksOf(id.Year); id.Week < 1 || id.Week > last {
		return ID{}, fmt.Errorf("week %q: the year %d has the weeks W01 to W%d", text, id.Year, last)
	}
	return id, nil
}

// weeksOf returns how many ISO weeks a year has: 28 December is always in the last one.
func weeksOf(year int) int {
	_, last := time.Date(year, time.December, 28, 0, 0, 0, 0, time.UTC).ISOWeek()
	return last
}

// String returns the week as Parse reads it.
func (id ID) String() string { return fmt.Sprintf("%04d-W%02d", id.Year, id.Week) }

// Compare is below zero if id is earlier than o.
func (id ID) Compare(o ID) int {
	return cmp.Or(cmp.Compare(id.Year, o.Year), cmp.Compare(id.Week, o.Week))
}

// Add returns the week n weeks later, or earlier if n is negative.
func (id ID) Add(n int) ID {
	year, week := id.monday().AddDate(0, 0, 7*n).ISOWeek()
	return ID{year, week}
}

// monday returns the Monday of the week, in UTC. 4 January is always in the first week.
func (id ID) monday() time.Time {
	fourth := time.Date(id.Year, time.January, 4, 0, 0, 0, 0, time.UTC)
	return fourth.AddDate(0, 0, 7*(id.Week-1)-(int(fourth.Weekday())+6)%7)
}

// Calendar is when weeks begin. The zero Calendar counts from Monday 00:00 in UTC.
type Calendar struct {
	zone *time.Location // nil: UTC
	// day counts from Monday, clock is the time of that day.
	day   int
	clock time.Duration
}

// days are the names of the days, from Monday.
var days = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// New returns the calendar of a time zone of the IANA database, in which weeks begin at a day and a time, as in "mon 00:00". What is
// empty is UTC and "mon 00:00".
func New(zone, begins string) (Calendar, error) {
	c := Calendar{zone: time.UTC}
	if strings.EqualFold(zone, "local") {
		return Calendar{}, fmt.Errorf("time zone %q: name one, as in Europe/Berlin: servers may differ in what is local to them", zone)
	}
	if zone != "" {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			return Calendar{}, fmt.Errorf("time zone %q is not known: name one of the IANA database, as in Europe/Berlin", zone)
		}
		c.zone = loc
	}
	if begins == "" {
		return c, nil
	}
	day, clock, _ := strings.Cut(strings.ToLower(begins), " ")
	at, err := time.Parse("15:04", clock)
	if c.day = indexOf(days, day); c.day < 0 || err != nil || len(clock) != len("15:04") {
		return Calendar{}, fmt.Errorf("week_starts %q: write a day (%s) and a time, as in \"mon 00:00\"", begins, strings.Join(days, ", "))
	}
	c.clock = time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
	return c, nil
}

func indexOf(list []string, of string) int {
	for i, one := range list {
		if one == of {
			return i
		}
	}
	return -1
}

// Zone returns the time zone.
func (c Calendar) Zone() *time.Location {
	if c.zone == nil {
		return time.UTC
	}
	return c.zone
}

// Begin returns when a week begins: at the first instant at which the clocks of the time zone show the day and the time of its beginning
// or later. Where they are set back over it, that is the first of the two; where they are set forward over it, the moment of that.
func (c Calendar) Begin(id ID) time.Time {
	shown := id.monday().AddDate(0, 0, c.day).Add(c.clock) // what the clocks show, as if they showed UTC
	before, after := c.offset(shown.Add(-26*time.Hour)), c.offset(shown.Add(26*time.Hour))
	first, last := shown.Add(-max(before, after)), shown.Add(-min(before, after))
	for _, at := range []time.Time{first, last} {
		if c.shows(at).Equal(shown) {
			return at.In(c.Zone())
		}
	}
	for last.Sub(first) > 1 { // before last the clocks have been set forward
		if middle := first.Add(last.Sub(first) / 2); c.shows(middle).Before(shown) {
			first = middle
		} else {
			last = middle
		}
	}
	return last.In(c.Zone())
}

// offset returns by how much the clocks are ahead of UTC.
func (c Calendar) offset(at time.Time) time.Duration {
	_, seconds := at.In(c.Zone()).Zone()
	return time.Duration(seconds) * time.Second
}

// shows returns what the clocks show, as if they showed UTC.
func (c Calendar) shows(at time.Time) time.Time { return at.UTC().Add(c.offset(at)) }

// End returns when a week ends, which is when the next one begins.
func (c Calendar) End(id ID) time.Time { return c.Begin(id.Add(1)) }

// At returns the week in which a time lies.
func (c Calendar) At(t time.Time) ID {
	year, week := t.In(c.Zone()).ISOWeek()
	id := ID{year, week}
	for c.Begin(id).After(t) {
		id = id.Add(-1)
	}
	for !c.End(id).After(t) {
		id = id.Add(1)
	}
	return id
}
