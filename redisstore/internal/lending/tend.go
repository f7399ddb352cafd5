package lending

import (
	"context"
	"slices"

	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/link"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/loans"
	"github.com/seed-161337e5/caddyratelimit/redisstore/internal/node"
	"github.com/seed-161337e5/caddyratelimit/store"
)

// Tend renews loans, which the link does not know, and returns what this process does not need, until the store is closed.
// Then it returns everything.
func (l *Layer) Tend() {
	defer close(l.done)
	l.Loans.Tend(l.Done, func() {
		for some := range slices.Chunk(l.Loans.Due(l.Loans.Now()), l.PerCall) {
			go l.sendLoans(context.Background(), some)
		}
	})
	l.returnLoans()
}

// returnLoans returns everything, also what comes with the answers that are still under way.
func (l *Layer) returnLoans() {
	ctx, cancel := context.WithTimeout(context.Background(), link.CloseTimeout)
	defer cancel()
	for again := true; again; {
		due, busy := l.Loans.GiveBack(l.Loans.Now())
		for some := range slices.Chunk(due, l.PerCall) {
			if ctx.Err() == nil {
				l.sendLoans(ctx, some)
			}
		}
		for _, over := range busy {
			select {
			case <-over:
			case <-ctx.Done():
				return
			}
		}
		again = len(busy) > 0
	}
}

// sendLoans sends asks that no request waits for.
func (l *Layer) sendLoans(ctx context.Context, due []loans.Due) {
	asks := make([]*link.Ask, len(due))
	for i := range due {
		asks[i] = &link.Ask{Check: &store.Check{Rule: due[i].Rule, Key: due[i].Key, KeyRules: due[i].Rules()}, Ask: due[i].Ask}
	}
	l.Lender.AskEach(ctx, asks)
	for i, a := range asks {
		if a.Err != nil || a.Unwritten {
			due[i].Fail(l.Loans.Now(), due[i].Ask.Number, a.Err != nil && node.MayHaveRun(a.Err))
		} else {
			due[i].End(l.Loans.Now(), due[i].Ask.Number, a.LendAnswer.Answer, 0, 0)
		}
	}
}

// Lent returns how many parts of a key are lent, and to how many processes: see [store.Shared].
func (l *Layer) Lent(ctx context.Context, rule *store.Rule, key string) (lent, borrowers int64, err error) {
	a := link.Ask{Check: &store.Check{Rule: rule, Key: key}, Peek: true}
	if err := l.Lender.AskTogether(ctx, []*link.Ask{&a}); err != nil {
		return 0, 0, err
	}
	return a.Lent, a.Borrowers, nil
}
