package algorithms

// Room is how many charges the log has allocated for.
func (l *Log) Room() int { return len(l.times) }
