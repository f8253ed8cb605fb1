package bucket

// MaxDims is how many dimensions a vector has.
const MaxDims = 12

// Vector is an exact availability or an exact request, by dimension. Dimensions that are not used
// are 0. An availability may be negative: the node is over-committed.
type Vector [MaxDims]int64

// Fits reports whether an availability holds a request. Dimensions of which the request wants
// nothing are not looked at, however over-committed they are.
func (v *Vector) Fits(need *Vector) bool {
	for d, n := range need {
		if n > 0 && v[d] < n {
			return false
		}
	}
	return true
}

// DefaultPageBudget is the page budget of a configuration that states none: more
// pages than a search visits that maxima lead, and a twentieth of 100,000 nodes.
const DefaultPageBudget = 256

// Config describes how an index orders its entries (semantics part 1).
type Config struct {
	// Order names the dimensions that make the coordinates, the most important
	// first. Empty: the index is ordered by ID only. A dimension named twice
	// counts once; one that does not exist is passed over.
	Order []int
	// Granularity is by dimension: a coordinate is the value divided by it and
	// rounded up. 0 and 1 keep the exact value.
	Granularity Vector
	// PageBudget is how many pages a search in another order than the index's may
	// pick best first, before it goes through the index in the index's order. 0: DefaultPageBudget.
	PageBudget int
}

// Token marks who may change a page in place: the edits made with it. Pages of
// another token are copied first. A token belongs to one line of edits: after a
// copy of the index was kept as a snapshot, go on with a new one.
type Token struct{ _ byte } // not empty: two empty structs may share an address

// NewToken makes a token that owns no page yet.
func NewToken() *Token { return &Token{} }

// Entry is one node of the index: its ID, its exact availability, and what the
// owner of the index keeps with it.
type Entry[V any] struct {
	ID    string
	At    Vector
	Value V
}

// Index is an ordered set of entries, found by what they have available. It is a
// value: a copy is a snapshot, made in O(1), which never changes. The zero value
// is an empty index ordered by ID. V should be small, such as a pointer: pages
// are copied with their values.
//
// One ID stands in an index once. Add, Remove and Update find an entry by its ID
// AND its coordinates, so they need the availability under which it was added,
// or any other of the same coordinates.
type Index[V any] struct {
	cfg   *config
	root  *page[V] // nil: empty
	count int
	width int // dimensions from here on are 0 in every entry and have no column
}

// New makes an empty index.
func New[V any](c Config) Index[V] {
	cfg := newConfig(c)
	return Index[V]{cfg: cfg, width: cfg.width()}
}

var byID = newConfig(Config{})

// config returns the configuration, also of the zero value.
func (x *Index[V]) config() *config {
	if x.cfg == nil {
		return byID
	}
	return x.cfg
}

// Len is how many entries there are.
func (x *Index[V]) Len() int { return x.count }

// Add puts an entry in; one of the same ID and coordinates is replaced. Pages
// that the token does not own are copied; a nil token owns none. O(D log n).
func Add[V any](t *Token, x *Index[V], id string, at Vector, v V) {
	widen(t, x, &at)
	e := edit[V]{cfg: x.config(), token: t, width: x.width, at: at, value: v}
	e.cfg.key(&e.to.key, &at, id)
	put(x, &e)
}

// Remove takes an entry out. False: there is none of this ID and these
// coordinates, and nothing changed. O(D log n).
func Remove[V any](t *Token, x *Index[V], id string, at Vector) bool {
	e := edit[V]{cfg: x.config(), token: t, width: x.width}
	e.cfg.key(&e.from.key, &at, id)
	return remove(x, &e)
}

// Update moves an entry from one availability to another, or replaces it where
// it is when its coordinates stay the same. Where nothing stands at from, it
// adds. O(D log n).
func Update[V any](t *Token, x *Index[V], id string, from, to Vector, v V) {
	widen(t, x, &to)
	e := edit[V]{cfg: x.config(), token: t, width: x.width, at: to, value: v}
	e.cfg.key(&e.to.key, &to, id)
	if !e.to.key.covers(e.cfg.order, &from) {
		e.from.key.exactly(id, e.to.key.prefix)
		e.cfg.keyIn(e.cfg.order, &e.from.key, &from)
		e.aim(x.root)
		remove(x, &e)
	}
	put(x, &e)
}

// Max returns, for each dimension, the exact maximum over all entries; zeroes when
// there are none. O(D).
func (x *Index[V]) Max() (most Vector) {
	if x.root == nil {
		return most
	}
	for d := range x.width {
		most[d] = x.root.most(d)
	}
	return most
}

// Any returns the first entry in order, or false when there is none.
func (x *Index[V]) Any() (Entry[V], bool) {
	p := x.root
	if p == nil {
		return Entry[V]{}, false
	}
	for p.kids != nil {
		p = p.kids[0]
	}
	return p.entry(0, x.width), true
}

// All returns every entry in order: coordinates first, then ID.
func (x *Index[V]) All(yield func(Entry[V]) bool) {
	if x.root != nil {
		x.root.all(x.width, yield)
	}
}

// Vertices counts the vertices of the tree that the index stands for, and how
// many of them are leaves: distinct prefixes of the entries' coordinates, and
// distinct coordinates. The root counts, unless the index is empty. O(D n).
func Vertices[V any](x *Index[V]) (all, leaves int) {
	cfg := x.config()
	var last []int64
	for e := range x.All {
		now := cfg.coordinates(&e.At)
		same := 0
		if last != nil {
			for same < len(now) && now[same] == last[same] {
				same++
			}
		} else {
			all++
			leaves++
		}
		if last != nil && same < len(now) {
			leaves++
		}
		all += len(now) - same
		last = now
	}
	return all, leaves
}

func put[V any](x *Index[V], e *edit[V]) {
	if x.root == nil {
		x.root = newLeaf[V](e.token, x.width)
	}
	left, right := e.put(x.root, 0)
	x.root = left
	if right != nil {
		x.root = newInner[V](e.token, x.width)
		x.root.divide(newSeparators(e.token, len(e.cfg.order)))
		x.root.n = 2
		x.root.kids[0], x.root.kids[1] = left, right
		x.root.separate(e.cfg, 1, right)
		x.root.sum(0, x.width)
		x.root.sum(1, x.width)
	}
	if e.added {
		x.count++
	}
}

func remove[V any](x *Index[V], e *edit[V]) bool {
	if x.root == nil {
		return false
	}
	root, found := e.remove(x.root, 0)
	if !found {
		return false
	}
	x.count--
	for root.kids != nil && root.n == 1 {
		root = root.kids[0]
	}
	if root.n == 0 {
		root = nil
	}
	x.root = root
	return true
}

// widen adds to every page columns for the dimensions that the vector uses. It
// copies all pages, which happens at most MaxDims times in the life of an index.
func widen[V any](t *Token, x *Index[V], at *Vector) {
	width := MaxDims
	for width > x.width && at[width-1] == 0 {
		width--
	}
	if width <= x.width {
		return
	}
	if x.root != nil {
		x.root = x.root.widened(t, width-x.width)
	}
	x.width = width
}
