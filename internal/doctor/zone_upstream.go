package doctor

import "time"

// overloads says whether the upstream of an adaptive zone is the bottleneck.
func overloads(z *Zone) []result {
	a := z.Adaptive
	switch {
	case a == nil:
		return nil
	case a.Waiting > 0:
		return warn(helpUpstream.With(), "the upstream is the bottleneck%s: %d requests run, as many as it can use, and %d wait", since(a.Since), a.Running, a.Waiting)
	case a.Failed > a.Useful/10 && a.Failed > enough:
		return warn(helpUpstream.With(), "the upstream failed %d of %d requests", a.Failed, a.Failed+a.Useful+a.Left)
	}
	return ok("no request waits for the upstream; its limit is %d", a.Limit)
}

// since says since when requests wait.
func since(at *time.Time) string {
	if at == nil {
		return ""
	}
	return " since " + at.Format(time.DateTime)
}
