package client

import (
	"context"
	"time"

	"github.com/nomadish/nomadish/internal/wire"
	"github.com/nomadish/nomadish/structs"
)

const (
	// maxReportBytes bounds a report of several allocations, maxUpdateBytes that of one: servers refuse more than 1 MiB by default.
	maxReportBytes, maxUpdateBytes = 512 << 10, 768 << 10
	// maxRefusals is how many reports may be refused in a row while the allocation is looked for that they are refused for: more are
	// refused for something else.
	maxRefusals = 16
	// refusedAgain is when an allocation that the servers refuse to hear of is reported again.
	refusedAgain = time.Minute
	// limitedBackoff is the shortest wait once the servers report that this node sends too much.
	limitedBackoff = time.Second
)

// refused reports whether the servers will not take a report however often it is sent.
func refused(err error) bool {
	switch structs.CodeOf(err) {
	case structs.CodeBadRequest, structs.CodeForbidden, structs.CodeTooLarge:
		return err != nil
	default:
		return false
	}
}

// updates returns what is to be reported about allocations, cut to what there is room for.
func (n *node) updates(ids []string, extra map[string]*structs.AllocClientUpdate) []*structs.AllocClientUpdate {
	out := make([]*structs.AllocClientUpdate, 0, len(ids))
	for _, id := range ids {
		u := extra[id]
		if u == nil {
			r := n.runner(id)
			if r == nil {
				n.reports.acknowledged(id, true) // collected
				continue
			}
			u = r.Snapshot()
		}
		out = append(out, u.Fit(maxUpdateBytes))
	}
	return out
}

// sendReport reports allocations, in several reports if one were too large. It returns those that the servers have not taken.
func (n *node) sendReport(ctx context.Context, ids []string, extra map[string]*structs.AllocClientUpdate) (left []string, err error) {
	all := n.updates(ids, extra)
	d := delivery{node: n}
	for len(all) > 0 {
		size, count := 0, 0
		for _, u := range all {
			if size += u.Size(); count > 0 && size > maxReportBytes {
				break
			}
			count++
		}
		if left, err = d.deliver(ctx, all[:count]); err != nil {
			return append(left, idsOf(all[count:])...), err
		}
		all = all[count:]
	}
	return nil, nil
}

func idsOf(all []*structs.AllocClientUpdate) []string {
	out := make([]string, len(all))
	for i, u := range all {
		out[i] = u.ID
	}
	return out
}

// delivery is the sending of one round of reports.
type delivery struct {
	node     *node
	refusals int // in a row
}

// deliver sends a report. If it is refused, the halves of it are sent by themselves, and so on, until the allocations are found that it
// is refused for: they must not keep the servers from hearing of the others. It returns those that are to be sent again.
func (d *delivery) deliver(ctx context.Context, all []*structs.AllocClientUpdate) (left []string, err error) {
	err = d.node.send(ctx, all)
	if err == nil {
		d.refusals = 0
		return nil, nil
	}
	if !refused(err) {
		return idsOf(all), err
	}
	if d.refusals++; d.refusals >= maxRefusals {
		return idsOf(all), err
	}
	if len(all) == 1 {
		return d.alone(ctx, all[0], err)
	}
	if !sleep(ctx, reportBackoff) {
		return idsOf(all), ctx.Err()
	}
	half := len(all) / 2
	if left, err = d.deliver(ctx, all[:half]); err != nil {
		return append(left, idsOf(all[half:])...), err
	}
	return d.deliver(ctx, all[half:])
}

// alone sends what matters most of an allocation whose report was refused: its state without its tasks' events. If that is refused, too,
// the allocation is reported again after a while, or when there is news of it.
func (d *delivery) alone(ctx context.Context, u *structs.AllocClientUpdate, why error) (left []string, err error) {
	n := d.node
	if n.c.logLimit.AllowOf("report", u.ID, time.Now()) {
		n.logger.Warn("the servers refuse what is reported of an allocation; a shorter report is sent; not logged again for an hour", "alloc_id", u.ID, "error", why)
	}
	err = n.send(ctx, []*structs.AllocClientUpdate{u.Cut(0, 0)})
	switch {
	case err == nil:
		d.refusals = 0
		return nil, nil
	case !refused(err):
		return []string{u.ID}, err
	}
	n.reports.postpone(u, n.runner(u.ID) == nil)
	return nil, nil
}

// postpone has an allocation reported again after a while. keep: as it is, because nothing here runs it.
func (p *reporter) postpone(u *structs.AllocClientUpdate, keep bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again[u.ID] = time.Now().Add(refusedAgain)
	if keep {
		p.final[u.ID] = u
	}
}

// send sends one report.
func (n *node) send(ctx context.Context, all []*structs.AllocClientUpdate) error {
	req := &structs.ClientUpdateRequest{NodeID: n.id, SecretID: n.secret, KnownIndex: n.heard.Load(), Updates: all}
	var reply structs.WriteReply
	sentTo, _ := n.servers.current()
	limit := reportLimit + time.Duration(len(all))*reportEach // a session that is lost ends it before
	if err := n.servers.call(ctx, limit, wire.MethodNodeUpdateAllocs, req, &reply); err != nil {
		return err
	}
	if answered, _ := n.servers.current(); answered != sentTo { // the other may have it, too
		n.reports.markUnsure(idsOf(all)...)
	}
	for _, u := range all {
		over := structs.TerminalClientStatus(u.ClientStatus)
		n.reports.acknowledged(u.ID, over)
		if over {
			n.reported(u.ID)
		}
	}
	return nil
}
