package driver

import (
	"fmt"
	"slices"
)

// Registry is the set of a node's drivers by name. It does not change after
// NewRegistry, so it needs no lock.
type Registry struct {
	byName map[string]Driver
	names  []string
}

// NewRegistry makes a registry of drivers. Two of the same name are an error.
func NewRegistry(drivers ...Driver) (*Registry, error) {
	r := &Registry{byName: make(map[string]Driver, len(drivers))}
	for _, d := range drivers {
		name := d.Name()
		if _, ok := r.byName[name]; ok {
			return nil, fmt.Errorf("driver %q: registered twice; give each driver a name of its own", name)
		}
		r.byName[name] = d
		r.names = append(r.names, name)
	}
	slices.Sort(r.names)
	return r, nil
}

// Get returns the driver of that name. The error lists those that there are.
func (r *Registry) Get(name string) (Driver, error) {
	d, ok := r.byName[name]
	if !ok {
		return nil, fmt.Errorf("driver %q: not on this node; it has %q", name, r.names)
	}
	return d, nil
}

// Names lists the drivers in order.
func (r *Registry) Names() []string { return slices.Clone(r.names) }
