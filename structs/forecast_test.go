package structs

import (
	"testing"
	"time"
)

// TestRenewalText: in how long there is a forecast is about when it comes, else when it does at the latest, and nothing is promised of one that is late.
func TestRenewalText(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(seconds int64) int64 { return now.UnixNano() + seconds*int64(time.Second) }
	of := func(index uint64, end, latest int64) ForecastRenewal {
		return ForecastRenewal{Index: index, Begin: at(-300), End: end, Latest: latest}
	}
	for _, c := range []struct {
		name string
		next []ForecastRenewal
		want string
	}{
		{"none is to come", nil, ""},
		{"it comes", []ForecastRenewal{of(7, at(40), at(90))}, "in about 40 s"},
		{"in minutes", []ForecastRenewal{of(7, at(121), at(190))}, "in about 3 min"},
		{"a longer queue", []ForecastRenewal{of(7, 0, at(90))}, "in about 90 s at most"},
		{"it takes longer than the last one", []ForecastRenewal{of(7, at(-1), at(90))}, "in about 90 s at most"},
		{"it is late", []ForecastRenewal{of(7, at(-90), at(0))}, "soon: it is late"},
		{"the one after it", []ForecastRenewal{of(6, at(40), at(90)), of(0, at(80), at(180))}, "in about 80 s"},
	} {
		if got := RenewalText(c.next, 7, now); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
