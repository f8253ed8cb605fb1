package command

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"unicode"

	"github.com/nomadish/nomadish/structs"
)

// bandText writes bands as -bands reads them.
func bandText(bands []structs.PriorityBand) string {
	out := make([]string, 0, len(bands))
	for _, b := range bands {
		out = append(out, fmt.Sprintf("%d-%d", b.Low, b.High))
	}
	return strings.Join(out, ",")
}

// strayText returns which priorities no band names, and which band they belong to; "" if
// there are none.
func strayText(c *structs.SchedulerConfiguration) string {
	bands := c.PriorityBands()
	var out []string
	next := structs.JobMinPriority // the first priority that no band was seen to name
	add := func(high int, belongs structs.PriorityBand) {
		if next > high {
			return
		}
		text := fmt.Sprintf("%d-%d", next, high)
		if next == high {
			text = strconv.Itoa(high)
		}
		out = append(out, fmt.Sprintf("%s to %d-%d", text, belongs.Low, belongs.High))
	}
	for i, b := range bands {
		add(b.Low-1, bands[max(0, i-1)])
		next = b.High + 1
	}
	add(structs.JobMaxPriority, bands[len(bands)-1])
	return strings.Join(out, ", ")
}

// ownFlags are the flags for what Nomad's configuration does not have.
func ownFlags(fs *flag.FlagSet) map[string]setting {
	out := placementFlags(fs)
	maps.Copy(out, bandFlags(fs))
	maps.Copy(out, calendarFlags(fs))
	maps.Copy(out, slotFlags(fs))
	return out
}

// calendarFlags are the flags for the calendars of projects, named like the keys of the agent's calendar block.
func calendarFlags(fs *flag.FlagSet) map[string]setting {
	fs.String("calendar-time-zone", "", "the time `zone` in which weeks of projects' calendars begin, as Europe/Berlin")
	fs.String("calendar-week-starts", "", "the `day and time` at which they begin, as \"mon 00:00\"")
	edit := func(set func(c *structs.CalendarConfiguration, text string)) setting {
		return func(c *structs.SchedulerConfiguration, text string) error {
			if text == "default" {
				text = ""
			}
			own := c.WeekCalendar()
			set(&own, text)
			c.Calendar = &own
			return nil
		}
	}
	return map[string]setting{
		"calendar-time-zone":   edit(func(c *structs.CalendarConfiguration, text string) { c.TimeZone = text }),
		"calendar-week-starts": edit(func(c *structs.CalendarConfiguration, text string) { c.WeekStarts = text }),
	}
}

// bandFlags are the flags for preemption and the queue, named like the keys of the
// agent's scheduling block.
func bandFlags(fs *flag.FlagSet) map[string]setting {
	fs.String("bands", "", "the `bands` of priority, lowest first, as 1-40,41-70,71-100: jobs preempt lower bands only")
	fs.String("cycle", "", "how long a job waits for one more of effective priority: a `duration`")
	fs.String("aging", "", "whether waiting adds to the effective priority: `true` or false")
	return map[string]setting{
		"bands": setBands,
		"cycle": func(c *structs.SchedulerConfiguration, text string) (err error) {
			c.Cycle, err = positive(text)
			return err
		},
		"aging": func(c *structs.SchedulerConfiguration, text string) error {
			c.Aging = nil
			if text == "" || text == "default" {
				return nil
			}
			on, err := strconv.ParseBool(text)
			if err != nil {
				return errors.New("write true or false, or 1 or 0")
			}
			aging := 0
			if on {
				aging = 1
			}
			c.Aging = &aging
			return nil
		},
	}
}

func setBands(c *structs.SchedulerConfiguration, text string) error {
	var bands []structs.PriorityBand
	for _, word := range words(text) {
		low, high, _ := strings.Cut(word, "-")
		from, err := strconv.Atoi(strings.TrimSpace(low))
		to, errTo := strconv.Atoi(strings.TrimSpace(high))
		if err != nil || errTo != nil {
			return fmt.Errorf("%q: write ranges of priorities from %d to %d, as 1-40,41-70,71-100", word, structs.JobMinPriority, structs.JobMaxPriority)
		}
		bands = append(bands, structs.PriorityBand{Low: from, High: to})
	}
	c.Bands = bands
	return nil
}

// byFlag names the flag that a refused field of the configuration was stated by:
// ReservationTTL is -reservation-ttl.
func byFlag(fs *flag.FlagSet, wrong error) error {
	field, rest := wrong.Error(), ""
	if end := strings.IndexFunc(field, func(r rune) bool { return !unicode.IsLetter(r) }); end >= 0 {
		field, rest = field[:end], field[end:]
	}
	var name strings.Builder
	lower := false
	for _, r := range field {
		if unicode.IsUpper(r) && lower {
			name.WriteByte('-')
		}
		lower = unicode.IsLower(r)
		name.WriteRune(unicode.ToLower(r))
	}
	stated := false
	fs.Visit(func(f *flag.Flag) { stated = stated || f.Name == name.String() })
	if !stated {
		return wrong
	}
	return errors.New("-" + name.String() + rest)
}
