package jobspec

import (
	"encoding/json"
	"testing"

	"github.com/nomadish/nomadish/structs"
)

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, _, err := Parse("x.hcl", []byte(minimalSeed), Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnmarshalCanonicalizeValidate(b *testing.B) {
	job, _, err := Parse("x.hcl", []byte(minimalSeed), Options{})
	if err != nil {
		b.Fatal(err)
	}
	raw, err := json.Marshal(job)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var j structs.Job
		if err := json.Unmarshal(raw, &j); err != nil {
			b.Fatal(err)
		}
		j.Canonicalize()
		if err := j.Validate().Err(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCopy(b *testing.B) {
	job, _, err := Parse("x.hcl", []byte(minimalSeed), Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		_ = job.Copy()
	}
}
