package memtable

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-memdb"

	"github.com/nomadish/nomadish/nomadish/state/internal/indexkey"
	"github.com/nomadish/nomadish/scheduler/persist"
)

// ReadWriter is a transaction of tables that are changed.
type ReadWriter interface {
	Reader
	Insert(table string, row any) error
	Delete(table string, row any) error
}

// Overlay is tables that lie over those of a transaction, which stays as it is. What is written is read at once, in place of what was there, and without a
// copy: a write costs a small part of one of memdb. Nobody is woken by it. It is for one goroutine.
type Overlay struct {
	under  *memdb.Txn
	tables map[string]*memdb.TableSchema
	layers map[layerKey]*layer
	tok    *persist.Token
	most   int // writes that stay unsorted, see mostUnsorted
}

type layerKey struct{ table, index string }

// layer is what an overlay has of an index.
type layer struct {
	// known are the rows by whole keys of a unique index, as they are now, that were read or written: the tables below are slow to be read.
	known map[string]layered
	// order is what was written, in the order of keys, but for unsorted, what was written since it was last walked: most indexes are never.
	// Of writes of the same key only the last stay, once there are room more of them.
	order    persist.Tree[indexkey.Text, layered]
	unsorted []written
	room     int
}

// mostUnsorted is how many writes of an index stay at least before those are dropped that others have replaced.
const mostUnsorted = 1 << 14

// layered is a row, or that there is none any more.
type layered struct {
	row   any  // nil: there is none
	below bool // there may be one under it
}

// written is that an index contains a row by a key now, or, with none, nothing.
type written struct {
	key string
	layered
}

// NewOverlay returns an overlay on a transaction that reads only, of tables with a schema.
func NewOverlay(under *memdb.Txn, schema *memdb.DBSchema) *Overlay {
	return &Overlay{under: under, tables: schema.Tables, layers: map[layerKey]*layer{}, tok: persist.NewToken(), most: mostUnsorted}
}

// FirstWatch implements Reader; the channel is nil.
func (o *Overlay) FirstWatch(table, index string, args ...any) (<-chan struct{}, any, error) {
	if t := o.tables[table]; t != nil && len(args) > 0 {
		if schema := t.Indexes[index]; schema != nil && schema.Unique {
			key, err := schema.Indexer.FromArgs(args...)
			if err != nil {
				return nil, nil, fmt.Errorf("key of %s by %s: %w", table, index, err)
			}
			is, err := o.at(layerKey{table, index}, key)
			return nil, is.row, err
		}
	}
	it, err := o.walk(table, index, false, args)
	if err != nil {
		return nil, nil, err
	}
	return nil, it.Next(), nil
}

// at returns the row of a whole key of a unique index, and whether there may be one of this key below.
func (o *Overlay) at(of layerKey, key []byte) (is layered, err error) {
	l := o.layer(of)
	if is, found := l.known[string(key)]; found {
		return is, nil
	}
	if is.row, err = o.under.First(of.table, of.index, rawKey(key)); err != nil {
		return is, fmt.Errorf("read a row of %s: %w", of.table, err)
	}
	is.below = is.row != nil
	l.learn(string(key), is)
	return is, nil
}

// named returns the row of a whole key of ByID. Most are known, and are found without a key on the heap.
func (o *Overlay) named(table string, parts []string) any {
	var short [128]byte
	of, key := layerKey{table, ByID}, appendKey(short[:0], parts...)
	if l := o.layers[of]; l != nil {
		if is, found := l.known[string(key)]; found {
			return is.row
		}
	}
	is, err := o.at(of, slices.Clone(key))
	if err != nil {
		mistake(table, ByID, err)
	}
	return is.row
}

// layer returns the layer of an index, made if need be.
func (o *Overlay) layer(of layerKey) *layer {
	l := o.layers[of]
	if l == nil {
		l = &layer{}
		o.layers[of] = l
	}
	return l
}

// learn keeps what the row of a whole key is now.
func (l *layer) learn(key string, is layered) {
	if l.known == nil {
		l.known = map[string]layered{}
	}
	l.known[key] = is
}

// sorted returns what was written of an index in the order of keys.
func (o *Overlay) sorted(l *layer) *persist.Tree[indexkey.Text, layered] {
	for _, w := range l.unsorted {
		key := indexkey.Text(w.key)
		was, found := l.order.Get(key)
		w.below = w.below || was.below
		if w.row == nil && !w.below {
			if found {
				persist.Delete(o.tok, &l.order, key)
			}
			continue
		}
		persist.Put(o.tok, &l.order, key, w.layered)
	}
	clear(l.unsorted) // rows need not stay
	l.unsorted, l.room = l.unsorted[:0], 0
	return &l.order
}

// Get implements Reader.
func (o *Overlay) Get(table, index string, args ...any) (memdb.ResultIterator, error) {
	return o.walk(table, index, false, args)
}

// GetReverse implements Reader.
func (o *Overlay) GetReverse(table, index string, args ...any) (memdb.ResultIterator, error) {
	return o.walk(table, index, true, args)
}

// find returns an index and what was written of it; nil: nothing was.
func (o *Overlay) find(table, index string) (*memdb.IndexSchema, *layer) {
	name := strings.TrimSuffix(index, "_prefix")
	l := o.layers[layerKey{table, name}]
	if l == nil || len(l.unsorted) == 0 && l.order.Len() == 0 {
		return nil, nil
	}
	return o.tables[table].Indexes[name], l
}

// walk returns the rows of an index in key order, or backwards.
func (o *Overlay) walk(table, index string, reverse bool, args []any) (memdb.ResultIterator, error) {
	find := o.under.Get
	if reverse {
		find = o.under.GetReverse
	}
	below, err := find(table, index, args...)
	if err != nil {
		return nil, fmt.Errorf("read %s by %s: %w", table, index, err)
	}
	schema, l := o.find(table, index)
	if l == nil {
		return below, nil
	}
	var prefix []byte
	switch prefixes, can := schema.Indexer.(memdb.PrefixIndexer); {
	case len(args) == 0:
	case schema.Name != index && can:
		prefix, err = prefixes.PrefixFromArgs(args...)
	default:
		prefix, err = schema.Indexer.FromArgs(args...)
	}
	if err != nil {
		return nil, fmt.Errorf("key of %s by %s: %w", table, index, err)
	}
	it := &overlaid{o: o, table: table, index: schema, below: below, reverse: reverse}
	from := indexkey.Text(prefix)
	o.sorted(l).Ascend(&from, func(key indexkey.Text, is layered) bool {
		if !strings.HasPrefix(string(key), string(from)) {
			return false
		}
		it.over = append(it.over, overRow{string(key), is.row})
		return true
	})
	if len(it.over) == 0 {
		return below, nil
	}
	return it, nil
}

// overlaid walks the rows of two layers.
type overlaid struct {
	o       *Overlay
	table   string
	index   *memdb.IndexSchema
	reverse bool
	over    []overRow // what was written, in key order, and is not passed yet
	below   memdb.ResultIterator
	row     any // the next of below; nil: it is to be read
	key     string
	done    bool // nothing is left of below
}

type overRow struct {
	key string
	row any
}

// WatchCh implements memdb.ResultIterator.
func (it *overlaid) WatchCh() <-chan struct{} { return nil }

// Next implements memdb.ResultIterator.
func (it *overlaid) Next() any {
	for {
		it.read()
		switch {
		case it.done && len(it.over) == 0:
			return nil
		case it.done || len(it.over) > 0 && it.first():
			is := it.next()
			if !it.done && is.key == it.key {
				it.row = nil // it is replaced
			}
			if is.row != nil {
				return is.row
			}
		default:
			row := it.row
			it.row = nil
			return row
		}
	}
}

// next takes the next that was written.
func (it *overlaid) next() (is overRow) {
	if n := len(it.over) - 1; it.reverse {
		is, it.over = it.over[n], it.over[:n]
	} else {
		is, it.over = it.over[0], it.over[1:]
	}
	return is
}

// read reads the next row below, unless it is known.
func (it *overlaid) read() {
	if it.done || it.row != nil {
		return
	}
	if it.row = it.below.Next(); it.row == nil {
		it.done = true
		return
	}
	key, _, err := it.o.keyOf(it.table, it.index, it.row)
	if err != nil { // it is a row of the table
		panic(err)
	}
	it.key = string(key)
}

// first reports whether what was written comes before the next below, or in its place.
func (it *overlaid) first() bool {
	if it.reverse {
		return it.over[len(it.over)-1].key >= it.key
	}
	return it.over[0].key <= it.key
}

// keyOf returns a row's key in an index; false: the row is not in it.
func (o *Overlay) keyOf(table string, index *memdb.IndexSchema, row any) ([]byte, bool, error) {
	key, ok, err := singleKey(index, row)
	if err != nil || !ok || index.Unique {
		return key, ok, err
	}
	id, _, err := singleKey(o.tables[table].Indexes[ByID], row)
	return append(key, id...), true, err
}

func singleKey(index *memdb.IndexSchema, row any) ([]byte, bool, error) {
	single, is := index.Indexer.(memdb.SingleIndexer)
	if !is {
		return nil, false, fmt.Errorf("index %s has several keys for a row", index.Name)
	}
	ok, key, err := single.FromObject(row)
	if err != nil {
		return nil, false, fmt.Errorf("key of a row by %s: %w", index.Name, err)
	}
	return key, ok, nil
}

// Insert implements ReadWriter.
func (o *Overlay) Insert(table string, row any) error { return o.write(table, row, row) }

// Delete implements ReadWriter.
func (o *Overlay) Delete(table string, row any) error { return o.write(table, row, nil) }

// write puts a row in place of that of the same ID; nil: none.
func (o *Overlay) write(table string, of, now any) error {
	schema := o.tables[table]
	if schema == nil {
		return fmt.Errorf("table %q is not known", table)
	}
	was, below, err := o.was(table, schema.Indexes[ByID], of)
	switch {
	case err != nil:
		return err
	case was == nil && now == nil:
		return memdb.ErrNotFound
	}
	for _, index := range schema.Indexes { // order does not matter: each is by itself
		var from, to []byte
		var had, has bool
		if was != nil {
			if from, had, err = o.keyOf(table, index, was); err != nil {
				return err
			}
		}
		if now != nil {
			if to, has, err = o.keyOf(table, index, now); err != nil {
				return err
			}
			if !has && !index.AllowMissing {
				return fmt.Errorf("a row of %s has no key by %s", table, index.Name)
			}
		}
		if had && (!has || !bytes.Equal(from, to)) {
			o.put(layerKey{table, index.Name}, index.Unique, string(from), layered{nil, below})
		}
		if has {
			o.put(layerKey{table, index.Name}, index.Unique, string(to), layered{now, below})
		}
	}
	return nil
}

// was returns the row that there is in place of one, and whether there may be one of the same ID under the overlay.
func (o *Overlay) was(table string, id *memdb.IndexSchema, of any) (row any, below bool, err error) {
	key, ok, err := singleKey(id, of)
	if err == nil && !ok {
		err = fmt.Errorf("a row of %s has no ID", table)
	}
	if err != nil {
		return nil, false, err
	}
	is, err := o.at(layerKey{table, ByID}, key)
	return is.row, is.below, err
}

// put has an index contain a row by a key, or that there is none.
func (o *Overlay) put(of layerKey, unique bool, key string, is layered) {
	l := o.layer(of)
	if len(l.unsorted) >= max(l.room, o.most) {
		l.compact()
	}
	l.unsorted = append(l.unsorted, written{key, is})
	if !unique {
		return
	}
	is.below = is.below || l.known[key].below
	if is.row == nil && !is.below {
		delete(l.known, key)
		return
	}
	l.learn(key, is)
}

// compact keeps the last of the unsorted writes of each key.
func (l *layer) compact() {
	last, kept := make(map[string]int, len(l.unsorted)/2), l.unsorted[:0]
	for _, w := range l.unsorted {
		if at, before := last[w.key]; before {
			w.below = w.below || kept[at].below
			kept[at] = w
			continue
		}
		last[w.key] = len(kept)
		kept = append(kept, w)
	}
	clear(l.unsorted[len(kept):])
	l.unsorted, l.room = kept, 2*len(kept)
}
