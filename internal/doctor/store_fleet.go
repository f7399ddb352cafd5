package doctor

import "fmt"

// fleet says how many instances share the store.
func fleet(s *Store) []result {
	switch f := s.Fleet; {
	case s.InProcess:
		return ok("each instance counts for itself: the limits hold for this one alone")
	case s.Silent():
		return nil
	case f.Size == 0:
		return cannotSay("this store does not count the instances that share it", "")
	case f.Size == 1:
		return ok("no other instance shares it now")
	case f.Err != nil:
		return cannotSay(fmt.Sprintf("%d instances share it, and what they define is not known: %v", f.Size, f.Err), "")
	case f.Telling < f.Size:
		return cannotSay(fmt.Sprintf("%d instances share it, and only %d tell how they define their zones", f.Size, f.Telling), "")
	default:
		return ok("%d instances share it", f.Size)
	}
}

// agrees finds other instances that define a zone otherwise, so that its limit depends on the instance.
func agrees(z *Zone) []result {
	if len(z.DefinedOtherwise) == 0 {
		return nil
	}
	return fail("give it the same limit, key and prefixes everywhere: compare 'caddy rate-limit zones' on each",
		"another instance defines it otherwise: %s", shorten(z.DefinedOtherwise))
}
