package week

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func calendar(t testing.TB, zone, begins string) Calendar {
	t.Helper()
	c, err := New(zone, begins)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWeeks: weeks of years with 52 and 53 weeks, in zones whose clocks are set, that begin at several days.
func TestWeeks(t *testing.T) {
	const layout = "2006-01-02 15:04 -0700"
	for _, row := range []struct{ zone, begins, week, begin, end string }{
		{"", "", "2026-W48", "2026-11-23 00:00 +0000", "2026-11-30 00:00 +0000"},
		{"UTC", "mon 00:00", "2026-W53", "2026-12-28 00:00 +0000", "2027-01-04 00:00 +0000"},
		{"UTC", "mon 00:00", "2027-W01", "2027-01-04 00:00 +0000", "2027-01-11 00:00 +0000"},
		{"UTC", "", "2025-W01", "2024-12-30 00:00 +0000", "2025-01-06 00:00 +0000"},
		{"Europe/Berlin", "", "2026-W13", "2026-03-23 00:00 +0100", "2026-03-30 00:00 +0200"}, // 167 hours
		{"Europe/Berlin", "", "2026-W43", "2026-10-19 00:00 +0200", "2026-10-26 00:00 +0100"}, // 169 hours
		{"Europe/Berlin", "", "2026-W53", "2026-12-28 00:00 +0100", "2027-01-04 00:00 +0100"},
		{"America/New_York", "sun 18:00", "2026-W48", "2026-11-29 18:00 -0500", "2026-12-06 18:00 -0500"},
		{"Asia/Kathmandu", "Wed 07:30", "2026-W01", "2025-12-31 07:30 +0545", "2026-01-07 07:30 +0545"},
		// 02:30 is not shown on that Sunday: the clocks are set from 02:00 to 03:00.
		{"Europe/Berlin", "sun 02:30", "2026-W13", "2026-03-29 03:00 +0200", "2026-04-05 02:30 +0200"},
		// 02:30 is shown twice.
		{"Europe/Berlin", "sun 02:30", "2026-W43", "2026-10-25 02:30 +0200", "2026-11-01 02:30 +0100"},
		// A whole day is left out: 30 December 2011.
		{"Pacific/Apia", "fri 12:00", "2011-W52", "2011-12-31 00:00 +1400", "2012-01-06 12:00 +1400"},
	} {
		c := calendar(t, row.zone, row.begins)
		id, err := Parse(row.week)
		if err != nil {
			t.Fatal(err)
		}
		if begin, end := c.Begin(id).Format(layout), c.End(id).Format(layout); begin != row.begin || end != row.end {
			t.Errorf("%s in %s from %q: %s to %s, want %s to %s", row.week, row.zone, row.begins, begin, end, row.begin, row.end)
		}
		if at, before := c.At(c.Begin(id)), c.At(c.Begin(id).Add(-1)); at != id || before != id.Add(-1) {
			t.Errorf("%s: the week of its beginning is %s, that of the instant before %s", row.week, at, before)
		}
	}
}

// TestWeeksFollow: each instant lies in one week, weeks follow each other without a gap, and one begins when the clocks first show the
// time of its beginning, found minute by minute.
func TestWeeksFollow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia", "America/Sao_Paulo"}).Draw(t, "zone")
		day, hour, minute := rapid.IntRange(0, 6).Draw(t, "day"), rapid.IntRange(0, 23).Draw(t, "hour"), rapid.SampledFrom([]int{0, 15, 30, 59}).Draw(t, "minute")
		begins := days[day] + " " + time.Date(0, 1, 1, hour, minute, 0, 0, time.UTC).Format("15:04")
		c, err := New(zone, begins)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(rapid.Int64Range(1_000_000_000, 4_000_000_000).Draw(t, "time"), 0)
		id := c.At(at)
		begin, end := c.Begin(id), c.End(id)
		if at.Before(begin) || !at.Before(end) || end.Sub(begin) < 5*24*time.Hour || end.Sub(begin) > 9*24*time.Hour {
			t.Fatalf("%s lies in %s, from %s to %s", at, id, begin, end)
		}
		if back, err := Parse(id.String()); err != nil || back != id || id.Add(1).Compare(id) <= 0 || id.Add(1).Add(-1) != id {
			t.Fatalf("%s is read as %s: %v", id, back, err)
		}
		monday := time.Date(id.monday().Year(), id.monday().Month(), id.monday().Day(), 0, 0, 0, 0, time.UTC)
		want := monday.AddDate(0, 0, day).Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
		for found := want.Add(-36 * time.Hour); ; found = found.Add(time.Minute) {
			y, m, d := found.In(c.Zone()).Date()
			h, mi, _ := found.In(c.Zone()).Clock()
			if !time.Date(y, m, d, h, mi, 0, 0, time.UTC).Before(want) {
				if !found.Equal(begin) {
					t.Fatalf("%s from %q in %s begins at %s, and the clocks show it first at %s", id, begins, zone, begin, found.In(c.Zone()))
				}
				break
			}
		}
	})
}

// TestWrongWeeks lists what is refused.
func TestWrongWeeks(t *testing.T) {
	for text, want := range map[string]string{
		"2026-W54": "W01 to W53", "2027-W53": "W01 to W52", "2026-W00": "W01 to W53", "2026-48": "as in 2026-W48", "2026-W4": "as in 2026-W48",
		"2026W48": "as in 2026-W48", "-026-W48": "as in 2026-W48", "2026-W4a": "as in 2026-W48", "": "as in 2026-W48", "0000-W01": "as in 2026-W48",
	} {
		if id, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want an error with %q", text, id, err, want)
		}
	}
	for _, row := range [][3]string{
		{"Mars/Olympus", "", "is not known"}, {"local", "", "servers may differ"}, {"../etc/passwd", "", "is not known"},
		{"UTC", "monday 00:00", "write a day"}, {"UTC", "mon", "write a day"}, {"UTC", "mon 24:00", "write a day"}, {"UTC", "mon 7:00", "write a day"},
	} {
		if _, err := New(row[0], row[1]); err == nil || !strings.Contains(err.Error(), row[2]) {
			t.Errorf("%v: %v", row, err)
		}
	}
	if c := (Calendar{}); c.At(time.Unix(0, 0)) != (ID{1970, 1}) {
		t.Errorf("the zero calendar: %s", c.At(time.Unix(0, 0)))
	}
}

// FuzzParse: what is read is written as it was.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"2026-W48", "2026-W53", "9999-W52", "x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := Parse(text); err == nil && id.String() != text {
			t.Errorf("%q is read as %s", text, id)
		}
	})
}
