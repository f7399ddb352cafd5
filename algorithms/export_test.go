package algorithms

// Room is how many events the log has allocated for.
func (l *Log) Room() int { return len(l.ring) }
