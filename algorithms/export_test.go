package algorithms

// Room returns how many charges the log has memory for.
func (l *Log) Room() int { return len(l.times) }
