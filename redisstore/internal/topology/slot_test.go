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

// TestResolveAddress: an address without a host is one of the host that named it.
func TestResolveAddress(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.2:6379": "10.0.0.2:6379", "redis-2:6379": "redis-2:6379", "[::1]:6379": "[::1]:6379",
		":6380": "10.0.0.1:6380", "?:6380": "10.0.0.1:6380",
	} {
		if got := resolveAddress("10.0.0.1:6379", address); got != want {
			t.Errorf("%q is at %s, want %s", address, got, want)
		}
	}
}
