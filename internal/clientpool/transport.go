package clientpool

import (
	"errors"
	"net"
	"sync"

	"github.com/hashicorp/memberlist"
	"github.com/hashicorp/serf/serf"
)

const freePorts = 10 // that are tried for any free one

// gatedTransport is a transport that nothing comes in by until it is opened.
type gatedTransport struct {
	*memberlist.NetTransport
	once   sync.Once
	opened chan struct{}
}

func (g *gatedTransport) open() { g.once.Do(func() { close(g.opened) }) }

// PacketCh implements memberlist.Transport.
func (g *gatedTransport) PacketCh() <-chan *memberlist.Packet {
	<-g.opened
	return g.NetTransport.PacketCh()
}

// StreamCh implements memberlist.Transport.
func (g *gatedTransport) StreamCh() <-chan net.Conn {
	<-g.opened
	return g.NetTransport.StreamCh()
}

// Shutdown implements memberlist.Transport: it waits for those who hand on what has come in.
func (g *gatedTransport) Shutdown() error {
	g.open()
	return g.NetTransport.Shutdown()
}

// create makes the Serf of the pool, without the queries that Serf answers by itself. By those any member reads and changes the
// keys of all others, and they cannot be switched off; but Serf answers them as a stage of its own in the way of its events, which it
// puts into its configuration. So the events are led past it, before anything is heard. Nobody else would answer them.
func (p *Pool) create(conf *serf.Config) error {
	list := conf.MemberlistConfig
	transport, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{BindAddrs: []string{list.BindAddr}, BindPort: list.BindPort, Logger: list.Logger})
	for tries := 1; err != nil && list.BindPort == 0 && tries < freePorts; tries++ { // one that is free for TCP may not be for UDP
		transport, err = memberlist.NewNetTransport(&memberlist.NetTransportConfig{BindAddrs: []string{list.BindAddr}, Logger: list.Logger})
	}
	if err != nil {
		return err
	}
	if list.BindPort == 0 {
		list.BindPort = transport.GetAutoBindPort()
		list.AdvertisePort = list.BindPort
	}
	g := &gatedTransport{NetTransport: transport, opened: make(chan struct{})}
	defer g.open()
	list.Transport = g
	if p.serf, err = serf.Create(conf); err != nil {
		return errors.Join(err, g.Shutdown())
	}
	conf.EventCh = p.events
	p.serf.Members() // by its lock Serf's own goroutines see that, too
	return nil
}
