package hclfile

import (
	"strings"
	"testing"
	"time"
)

// rack is a noun that is no job.
type rack struct {
	Name  string            `hcl:"name,label"`
	Units int               `hcl:"units" check:"min=1,max=48"`
	Grace time.Duration     `hcl:"grace"`
	Racks map[string]*shelf `hcl:"shelf,block"`
	Limit *uint16           `hcl:"limit"`
	Built time.Time         `hcl:"built"`
	Until *time.Time        `hcl:"until"`
	Tags  map[string]string `hcl:"tags,block"`
}

type shelf struct {
	Name  string  `hcl:"name,label"`
	Kind  string  `hcl:"kind,optlabel"`
	Ratio float64 `hcl:"ratio"`
}

func (r *rack) SetDefaults() { r.Units = 42 }

func decodeRack(t *testing.T, src string) (rack, *Decoder, Problems) {
	t.Helper()
	f, problems := Parse("rack.hcl", []byte(src), Limits{})
	if len(problems) > 0 {
		return rack{}, nil, problems
	}
	scope, blocks, problems := NewScope(f, Options{})
	if len(problems) > 0 {
		return rack{}, nil, problems
	}
	if problems := f.Literal(blocks[0].Body); len(problems) > 0 {
		return rack{}, nil, problems
	}
	d := NewDecoder(f, scope)
	var r rack
	d.Block(blocks[0], &r, "rack")
	return r, d, d.Problems()
}

func TestAnyNounDecodes(t *testing.T) {
	r, d, problems := decodeRack(t, `
		rack "r1" {
			grace = "3s"
			limit = 7
			tags  = { a = 1 }
			shelf "top" { ratio = 0.5 }
			shelf "low" { kind = "deep" }
			built = "2026-12-01T08:00:00+01:00"
			until = "2026-12-01T08:00:00Z"
		}`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if r.Units != 42 || r.Grace != 3*time.Second || *r.Limit != 7 || r.Tags["a"] != "1" ||
		r.Racks["top"].Ratio != 0.5 || r.Racks["low"].Kind != "deep" ||
		!r.Built.Equal(time.Date(2026, 12, 1, 7, 0, 0, 0, time.UTC)) || r.Until.Sub(r.Built) != time.Hour {
		t.Errorf("have %+v", r)
	}
	place := func(path, field string, line int) {
		t.Helper()
		rng, ok := d.Range(path, field)
		if !ok || rng.Start.Line != line {
			t.Errorf("%s, %s: have %v, %v, want line %d", path, field, rng, ok, line)
		}
	}
	place("rack", "limit", 4)
	place(`rack > shelf "low"`, "kind", 7)
	place(`rack > shelf "low"`, "ratio", 7)
	place(`rack > shelf "none" > x`, "y", 2)
	if _, ok := d.Range("elsewhere", "x"); ok {
		t.Error("found what is not there")
	}
}

func TestAnyNounIsChecked(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		_, _, problems := decodeRack(t, "rack \"r\" {\n"+body+"\n}\n")
		if !strings.Contains(problems.Error(), want) {
			t.Errorf("%s: have %v, want %q", body, problems, want)
		}
	}
	f("units = 49", "rack.hcl:2:9: rack: units: must be between 1 and 48, not 49")
	f("limit = 70000", "rack.hcl:2:9: rack: limit: must be a whole number from 0 to 65535, not 70000")
	f("limit = -1", "must be a whole number from 0 to 65535, not -1")
	f(`shelf "a" { ratio = "x" }`, "ratio: must be a number, not the string \"x\"")
	f(`shelf "a" "b" {}`, "shelf takes one label, not 2")
	const moment = `built: must be a time such as "2026-12-01T00:00:00Z" or "2026-12-01T08:00:00+01:00", `
	f(`built = 7`, `built: must be a time such as "2026-12-01T00:00:00Z" or "2026-12-01T08:00:00+01:00", in quotes, not the number 7`)
	f(`built = "tomorrow"`, moment+`not the string "tomorrow"`)
	f(`built = "2026-13-01T00:00:00Z"`, moment+`not the string "2026-13-01T00:00:00Z"`)
	f(`built = "2026-12-01"`, moment+`not "2026-12-01"; in UTC it is written "2026-12-01T00:00:00Z"`)
	f(`built = "2026-12-01 08:30"`, `in UTC it is written "2026-12-01T08:30:00Z"`)
	f(`built { }`, "built is an attribute, not a block")
	f(`unit = 3`, `unknown attribute "unit"; did you mean "units"?`)
}
