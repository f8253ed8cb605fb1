package heartbeat

import (
	"fmt"
	"testing"
	"time"

	"github.com/nomadish/nomadish/structs"
)

func many(n int) []string {
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprintf("n%03d", i))
	}
	return ids
}

// TestMassFailure: when too many are suspect nobody is declared lost, and it is said; those that stay away are when it is over.
func TestMassFailure(t *testing.T) {
	ids := many(20)
	witnessed(t, Options{}, ids, func(b *bed, s *seen) {
		s.set(s.deaf, true, ids[:6]...)
		s.set(s.mute, true, ids[:6]...)
		time.Sleep(2 * time.Second) // gossip notices them one after the other, and no sooner
		b.Suspect(ids[0])
		time.Sleep(5 * time.Second)
		for _, id := range ids[1:6] {
			b.Suspect(id)
		}
		time.Sleep(time.Minute)
		for _, id := range ids {
			b.want(id, structs.NodeStatusReady)
		}
		if b.MassFailure().IsZero() || b.told(ids[0], massFailureLasts) != 1 {
			b.Fatalf("nothing is said: %v", b.node(ids[0]).Events)
		}
		s.set(s.deaf, false, ids[2:6]...)
		s.set(s.mute, false, ids[2:6]...)
		time.Sleep(10 * time.Second)
		if !b.MassFailure().IsZero() {
			b.Fatal("the storm goes on")
		}
		b.want(ids[0], structs.NodeStatusDown)
		b.want(ids[1], structs.NodeStatusDown)
		for _, id := range ids[2:] {
			b.want(id, structs.NodeStatusReady)
		}
	})
}

// TestMassFailureNotForEver: those that stay away are declared lost at last.
func TestMassFailureNotForEver(t *testing.T) {
	ids := many(10)
	witnessed(t, Options{Liveness: Liveness{MassFailureLimit: time.Minute}}, ids, func(b *bed, s *seen) {
		s.set(s.deaf, true, ids[:5]...)
		s.set(s.mute, true, ids[:5]...)
		b.Suspect(ids[:5]...)
		time.Sleep(time.Minute)
		b.want(ids[0], structs.NodeStatusReady)
		time.Sleep(10 * time.Second)
		for i, id := range ids {
			want := structs.NodeStatusReady
			if i < 5 {
				want = structs.NodeStatusDown
			}
			b.want(id, want)
		}
	})
}

// TestNoMassFailureOfFew: fewer than the least number are declared, whatever their share.
func TestNoMassFailureOfFew(t *testing.T) {
	ids := many(5)
	witnessed(t, Options{}, ids, func(b *bed, s *seen) {
		s.set(s.deaf, true, ids[:4]...)
		s.set(s.mute, true, ids[:4]...)
		b.Suspect(ids[:4]...)
		time.Sleep(3 * time.Second)
		for _, id := range ids[:4] {
			b.want(id, structs.NodeStatusDown)
		}
	})
}

// TestManyChecks: however many are suspected, few are checked at once, and all are in the end.
func TestManyChecks(t *testing.T) {
	ids := many(300)
	witnessed(t, Options{}, ids, func(b *bed, s *seen) {
		s.set(s.mute, true, ids...)
		b.Suspect(ids...)
		time.Sleep(15 * time.Second)
		for _, id := range ids {
			b.want(id, structs.NodeStatusReady)
			if b.told(id, gossipLost) != 1 {
				b.Fatalf("%s: %v", id, b.node(id).Events)
			}
		}
		if s.together > checksAtOnce {
			b.Fatalf("%d checks at once", s.together)
		}
	})
}

// TestLostOneByOneIsNoMassFailure: nodes are lost one by one, 5 s apart: two or three within any 10 s, of 24. The server whose session with each still looks
// open (25 s of yamux, when packets are dropped) says so again every 2 s, as PingSilent does.
func TestLostOneByOneIsNoMassFailure(t *testing.T) {
	var ids []string
	for i := range 24 {
		ids = append(ids, fmt.Sprintf("n%02d", i))
	}
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("told again: ", again), func(t *testing.T) {
			witnessed(t, Options{}, ids, func(b *bed, s *seen) {
				var dead []string
				worst := time.Duration(0)
				for i := range 7 {
					id := ids[i]
					s.set(s.deaf, true, id)
					s.set(s.mute, true, id)
					s.set(s.failed, true, id)
					dead = append(dead, id)
					b.Suspect(id)
					for k := range 50 { // 5 s
						time.Sleep(100 * time.Millisecond)
						if again && k%20 == 19 {
							b.Suspect(dead[max(0, len(dead)-5):]...)
						}
						if !b.MassFailure().IsZero() {
							b.Fatalf("a storm with %d lost over %d s, two or three within any 10 s", len(dead), 5*len(dead))
						}
						if b.node(id).Status == structs.NodeStatusReady {
							worst = max(worst, time.Duration(k+1)*100*time.Millisecond)
						}
					}
					if !b.MassFailure().IsZero() {
						b.Fatalf("a storm with %d of 24 lost over %d s; %s is %s", len(dead), 5*len(dead), id, b.node(id).Status)
					}
				}
				b.Logf("declared within %s", worst)
			})
		})
	}
}
