package memtable

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/hashicorp/go-memdb"
	"pgregory.net/rapid"
)

// TestOverlay compares an overlay with a transaction of memdb that all is written to.
func TestOverlay(t *testing.T) {
	type row struct{ id, group, mark string }
	schema := &memdb.DBSchema{Tables: map[string]*memdb.TableSchema{"rows": {Name: "rows", Indexes: map[string]*memdb.IndexSchema{
		"id": UniqueBy(func(r *row) []byte { return Key(r.id) }),
		"group": Also("group", func(r *row) []byte {
			if r.group == "" {
				return nil
			}
			return Key(r.group)
		}),
		"marked": {Name: "marked", Unique: true, AllowMissing: true, Indexer: Indexer[row]{Of: func(r *row) []byte {
			if r.mark == "" {
				return nil
			}
			return Key(r.id, r.mark)
		}}},
	}}}}
	rapid.Check(t, func(t *rapid.T) {
		db, err := memdb.NewMemDB(schema)
		if err != nil {
			t.Fatal(err)
		}
		draw := func() *row {
			return &row{
				rapid.SampledFrom([]string{"a", "aa", "ab", "b", "ba"}).Draw(t, "id"), rapid.SampledFrom([]string{"", "g", "gg", "h"}).Draw(t, "group"),
				rapid.SampledFrom([]string{"", "m", "n"}).Draw(t, "mark"),
			}
		}
		base := db.Txn(true)
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			if err := base.Insert("rows", draw()); err != nil {
				t.Fatal(err)
			}
		}
		base.Commit()
		over, all := NewOverlay(db.Txn(false), schema), db.Txn(true)
		over.most = 3
		for range rapid.IntRange(1, 12).Draw(t, "writes") {
			r := draw()
			if rapid.Bool().Draw(t, "insert") {
				if have, want := over.Insert("rows", r), all.Insert("rows", r); have != nil || want != nil {
					t.Fatalf("insert: %v, want %v", have, want)
				}
			} else if have, want := over.Delete("rows", r), all.Delete("rows", r); (have == nil) != (want == nil) {
				t.Fatalf("delete: %v, want %v", have, want)
			}
			if rapid.Bool().Draw(t, "more before it is read") {
				continue
			}
			for _, read := range [][]any{
				{"id"}, {"id", r.id}, {"id_prefix", r.id[:1]}, {"group"}, {"group", "g"}, {"group_prefix", "g"}, {"marked"}, {"marked", r.id, "m"}, {"marked_prefix", r.id, ""},
			} {
				index := read[0].(string)
				for _, reverse := range []bool{false, true} {
					list := func(from Reader) (out []row) {
						Rows[row](from, reverse, "rows", index, read[1:]...)(func(r *row) bool {
							out = append(out, *r)
							return true
						})
						return out
					}
					if have, want := list(over), list(all); !reflect.DeepEqual(have, want) {
						t.Fatalf("%v, reverse %t: %v, want %v", read, reverse, have, want)
					}
				}
				have, _ := First[row](over, "rows", index, read[1:]...)
				if want, _ := First[row](all, "rows", index, read[1:]...); fmt.Sprint(have) != fmt.Sprint(want) {
					t.Fatalf("first of %v: %v, want %v", read, have, want)
				}
			}
		}
	})
}
