package gossip

import "maps"

// TagDisk reports that a server's disk is full, with a short description; without it there is room.
const TagDisk = "disk"

// SetTag changes a tag of this server, at once and until the next start; empty: it removes the tag.
func (p *Pool) SetTag(name, value string) error {
	p.tags.Lock()
	defer p.tags.Unlock()
	tags := maps.Clone(p.serf.LocalMember().Tags)
	if tags[name] == value {
		return nil
	}
	tags[name] = value
	if value == "" {
		delete(tags, name)
	}
	return p.serf.SetTags(tags)
}
