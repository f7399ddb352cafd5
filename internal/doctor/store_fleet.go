package doctor

import (
	"fmt"

	"github.com/seed-161337e5/caddyratelimit/internal/advice"
)

// fleet says how many instances share the store.
func fleet(s *Store) []result {
	switch f := s.Fleet; {
	case s.InProcess:
		return ok("each instance counts for itself: the limits hold for this one only")
	case s.Silent():
		return nil
	case f.Size == 0:
		return cannotSay("this store does not count the instances that share it", advice.Text{})
	case s.FewInstances() != "":
		return warn(countInstances.With(f.Size), "%s", tooFew(f))
	case f.Size == 1:
		return ok("no other instance shares it now")
	case f.Err != nil:
		return cannotSay(fmt.Sprintf("%d instances share it, and what they define is not known: %v", f.Size, f.Err), advice.Text{})
	case f.Telling < f.Size:
		return cannotSay(fmt.Sprintf("%d instances share it, and only %d tell how they define their zones", f.Size, f.Telling), advice.Text{})
	default:
		return ok("%d instances share it", f.Size)
	}
}

func tooFew(f Fleet) string {
	return fmt.Sprintf("instances is %d, but %d instances share the store: while it does not answer, they admit %d/%d of each limit", f.Configured, f.Size, f.Size, f.Configured)
}

// FewInstances says that more instances share the store than the config says, and what to do; empty if this
// is not so.
func (s *Store) FewInstances() string {
	if f := s.Fleet; !s.InProcess && f.Configured > 0 && f.Size > f.Configured {
		return tooFew(f) + "; " + countInstances.With(f.Size).String()
	}
	return ""
}

// agrees finds other instances that define a zone otherwise, so that its limit depends on the instance.
func agrees(z *Zone) []result {
	if len(z.DefinedOtherwise) == 0 {
		return nil
	}
	return fail(defineOne.With(),
		"here it is %s; another instance defines it differently: %s", z.Definition, shorten(z.DefinedOtherwise))
}
