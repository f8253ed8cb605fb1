package command

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nomadish/nomadish/command/ui"
	"github.com/nomadish/nomadish/structs"
)

// placementPairs are the parts of the scheduler's configuration that Nomad does not
// have, with their defaults written out.
func placementPairs(c *structs.SchedulerConfiguration) []ui.Pair {
	c = c.Effective()
	levels := make([]string, 0, len(c.Levels))
	for _, l := range c.Levels {
		levels = append(levels, l.Name+"="+l.Meta)
	}
	steps := make([]string, 0, len(c.Granularity))
	for _, d := range structs.Dimensions() {
		steps = append(steps, fmt.Sprintf("%s=%d", d, c.Granularity[d]))
	}
	cells := make([]string, 0, len(c.PreferredCells))
	for _, n := range c.PreferredCells {
		cells = append(cells, strconv.Itoa(n))
	}
	after := "never"
	if d, on := c.ReserveAfter(); on {
		after = d.String()
	}
	bands := bandText(c.Bands)
	if stray := strayText(c); stray != "" {
		bands += " (no band names these, which belong: " + stray + ")"
	}
	return append([]ui.Pair{
		{Key: "Policy", Value: c.NodeOrder()},
		{Key: "Dimensions", Value: strings.Join(c.Dimensions, ",")},
		{Key: "Granularity", Value: strings.Join(steps, ",")},
		{Key: "Levels", Value: ui.OrNone(strings.Join(levels, ","))},
		{Key: "Preferred Cells", Value: ui.OrNone(strings.Join(cells, ","))},
		{Key: "Reservation After", Value: after},
		{Key: "Reservation TTL", Value: c.ReservationTTL.String()},
		{Key: "Bands", Value: bands},
		{Key: "Keep Whole", Value: strconv.FormatBool(c.KeepWhole)},
		{Key: "Cycle", Value: c.Cycle.String()},
		{Key: "Aging", Value: strconv.FormatBool(*c.Aging != 0)},
		{Key: "Calendar", Value: "weeks begin at " + c.Calendar.WeekStarts + " in " + c.Calendar.TimeZone},
	}, slotPairs(c.Slots)...)
}

// setting writes a flag's text into the configuration. An empty text, or "default",
// takes back what was stated before.
type setting func(c *structs.SchedulerConfiguration, text string) error

// placementFlags are the flags for them, named like the keys of the agent's scheduling
// and topology blocks, but for those of bands.
func placementFlags(fs *flag.FlagSet) map[string]setting {
	fs.String("policy", "", "the order in which nodes are tried: "+strings.Join(structs.Policies(), ", ")+" (a `name`)")
	fs.String("dimensions", "", "the order in which room is compared, as `gpus,cpu,memory`")
	fs.String("granularity", "", "the steps in which room is compared, as `cpu=500,memory=1024`; those not named stay")
	fs.String("levels", "", "the topology above nodes, lowest first, as `rack=META,pod=META`; \"none\" for none")
	fs.String("preferred-cells", "", "`sizes` in GPUs whose free cells are cut before larger ones, as 2,8")
	fs.String("reservation-after", "", "how long a request waits before it reserves resources: a `duration`, or \"never\"")
	fs.String("reservation-ttl", "", "how long it holds it: a `duration`")
	return map[string]setting{
		"policy": func(c *structs.SchedulerConfiguration, text string) error {
			if text == "default" {
				text = ""
			}
			c.SetNodeOrder(text)
			return nil
		},
		"dimensions": func(c *structs.SchedulerConfiguration, text string) error {
			c.Dimensions = words(text)
			return nil
		},
		"granularity":       setGranularity,
		"levels":            setLevels,
		"preferred-cells":   setPreferredCells,
		"reservation-after": setReservationAfter,
		"reservation-ttl": func(c *structs.SchedulerConfiguration, text string) (err error) {
			c.ReservationTTL, err = positive(text)
			return err
		},
	}
}

// words are the parts of a list with commas; none of "" and "default".
func words(text string) []string {
	if text == "" || text == "default" {
		return nil
	}
	var out []string
	for word := range strings.SplitSeq(text, ",") {
		out = append(out, strings.TrimSpace(word))
	}
	return out
}

// setGranularity changes the steps that are named; the others stay.
func setGranularity(c *structs.SchedulerConfiguration, text string) error {
	steps := map[string]int64{}
	if len(words(text)) > 0 {
		maps.Copy(steps, c.Granularity)
	}
	for _, word := range words(text) {
		name, number, _ := strings.Cut(word, "=")
		step, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return errors.New("write it as cpu=500,memory=1024")
		}
		steps[name] = step
	}
	c.Granularity = steps
	return nil
}

func setLevels(c *structs.SchedulerConfiguration, text string) error {
	if text == "none" {
		c.Levels = []structs.TopologyLevel{}
		return nil
	}
	c.Levels = nil
	for _, word := range words(text) {
		name, meta, stated := strings.Cut(word, "=")
		if !stated {
			meta = name
		}
		c.Levels = append(c.Levels, structs.TopologyLevel{Name: name, Meta: meta})
	}
	return nil
}

func setPreferredCells(c *structs.SchedulerConfiguration, text string) error {
	var sizes []int
	for _, word := range slices.DeleteFunc(words(text), func(w string) bool { return w == "none" }) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return errors.New("write sizes in GPUs, as 2,8")
		}
		sizes = append(sizes, n)
	}
	c.PreferredCells = sizes
	return nil
}

func setReservationAfter(c *structs.SchedulerConfiguration, text string) (err error) {
	if text == "never" {
		c.ReservationAfter = -1
		return nil
	}
	if c.ReservationAfter, err = positive(text); err != nil {
		return errors.New("write a duration above 0, such as 5m or 1h30m, or \"never\" to reserve no room")
	}
	return nil
}

// positive reads a duration; 0, the default, of "" and "default".
func positive(text string) (time.Duration, error) {
	if text == "" || text == "default" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, errors.New("write a duration above 0, such as 5m or 1h30m")
	}
	return d, nil
}
