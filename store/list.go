package store

import (
	"context"
	"errors"
)

// ErrCursor is the error of a list whose cursor is not one of the store.
var ErrCursor = errors.New("the cursor is not one of this store")

// Lister is a [Store] that can list the keys of a zone for which an operator or a ban has
// overruled the limit, and say how near a key is to a ban.
//
// Lists come in pages. The cursor of the first page is "", and next is that of the following
// one, or "" after the last. A page may be empty, and may have more than n keys. A key that
// changes meanwhile may be missing or come twice. All methods ask the store's backend at once. They fail as Take does,
// and with [ErrCursor].
type Lister interface {
	// Overrides lists the keys that have an override, with what is left of it.
	Overrides(ctx context.Context, rule *Rule, cursor string, n int) (keys []Listed, next string, err error)

	// Bans lists the keys that are banned because they were refused too often. Their overrides
	// are of [KindBanned], with the rest of the ban.
	Bans(ctx context.Context, rule *Rule, ban *Ban, cursor string, n int) (keys []Listed, next string, err error)

	// Refusals returns which refusals of a key count towards the next ban of its zone.
	Refusals(ctx context.Context, rule *Rule, ban *Ban, key string) (Refusals, error)
}

// Listed is a key of a list.
type Listed struct {
	Key      string
	Override Override

	// Unknown says that the store only has a hash of the key, which is shown instead.
	Unknown bool
}
