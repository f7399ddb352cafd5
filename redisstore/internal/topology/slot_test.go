package topology

import "testing"

// TestSlotOf: the slots of some keys, as CLUSTER KEYSLOT answers them.
func TestSlotOf(t *testing.T) {
	for key, want := range map[string]uint16{
		"": 0, "123456789": 12739, "foo": 12182, "{foo}bar": 12182, "a{foo}bar": 12182, "a{foo}{bar}": 12182,
		"{}foo": 9500, "{foo": 13308,
	} {
		if got := SlotOf(key); got != want {
			t.Errorf("%q has slot %d, want %d", key, got, want)
		}
	}
}
