package widen

import "time"

// LookNow does at once what is done every few seconds, for networks that were watched for so long.
func (w *Widener) LookNow(watched time.Duration) {
	for len(w.begun) > 0 {
		b := <-w.begun
		w.note(&b)
	}
	w.Watched = watched
	w.lookAtAll()
}

// Waiting returns how many bans wait to be noted.
func (w *Widener) Waiting() int { return len(w.begun) }
