package node

// Commands are those that the node is sent beside scripts.
func (n *Node) Commands() []string {
	if n.config.Cluster {
		return []string{"evalsha", "asking"}
	}
	return []string{"evalsha"}
}

// ProbeKey names the key that a probe may write.
func (n *Node) ProbeKey(slot uint16) string { return n.config.ProbeKey(slot) }
