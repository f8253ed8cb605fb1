package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nomadish/nomadish/scheduler/trace"
)

// reservationNames are the ways in which workflows run as the report names them.
var reservationNames = map[string]string{
	trace.ReservationsNone: "no reservation", trace.ReservationsWhole: "reserved, not lent", trace.ReservationsLend: "reserved and lent",
}

// readReservations reads how the workflows of the trace run; without workflows there is one way, which has no name.
func (p *simPlan) readReservations() error {
	o := p.o
	p.reservations = []string{""}
	switch {
	case !p.trace.Workflows && o.reservations != "":
		return errors.New("-reservations: compares how workflows run, and the trace has none: a trace of the simple format names them in the column workflow")
	case !p.trace.Workflows:
		return nil
	case o.drop || o.order != "":
		return errors.New("the trace has workflows, which are replayed while jobs come and go: leave out -drop and -order")
	case o.virtualClusters != "":
		return errors.New("-virtual-clusters: the trace has workflows, and they are not replayed together with virtual clusters")
	}
	if p.reservations = []string{trace.ReservationsLend}; o.reservations == "" {
		return nil
	}
	p.reservations = nil
	for part := range strings.SplitSeq(o.reservations, ",") {
		name := strings.TrimSpace(part)
		if !slices.Contains(trace.Reservations(), name) {
			return fmt.Errorf("-reservations %q: is not known; there are %s", name, strings.Join(trace.Reservations(), ", "))
		}
		if slices.Contains(p.reservations, name) {
			return fmt.Errorf("-reservations: %s is named twice", name)
		}
		p.reservations = append(p.reservations, name)
	}
	return nil
}
