package limits

import "math"

// Holder is one stream, subscription or peer with a usage of its own. A nil Holder
// has no bounds.
type Holder struct {
	of    *Budget
	party Party
	used  int // guarded by of.mu
}

// Holder returns a holder with no usage.
func (b *Budget) Holder(of Party) *Holder { return &Holder{of: b, party: of} }

// Take charges n to the holder. The error names the bound that is reached.
func (h *Holder) Take(n int) error {
	if h == nil {
		return nil
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	return h.take(n)
}

// TakeOrWait is Take. Without room it returns a channel that is closed when there
// may be room.
func (h *Holder) TakeOrWait(n int) (full <-chan struct{}) {
	full, _ = h.takeOrWait(n)
	return full
}

func (h *Holder) takeOrWait(n int) (full <-chan struct{}, err error) {
	b := h.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if err = h.take(n); err == nil {
		return nil, nil
	}
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed, err
}

func (h *Holder) take(n int) error {
	b := h.of
	room, spare := b.room(h.party, h.used)
	if shares := b.bound.Share > 0; shares && h.used == 0 {
		room = spare
		if b.owners[h.party.owner()] == 0 {
			room = math.MaxInt
		}
	}
	if n > room {
		return b.full(h.party, n)
	}
	h.add(n)
	return nil
}

// Left returns how much the holder may still take, and in spare how much it could
// take if it held nothing.
func (h *Holder) Left() (room, spare int) {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	return h.of.room(h.party, h.used)
}

// InUse returns the usage of the holder.
func (h *Holder) InUse() int {
	if h == nil {
		return 0
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	return h.used
}

// Force charges n regardless of the bounds.
func (h *Holder) Force(n int) {
	if h == nil {
		return
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	h.add(n)
}

// Give returns n, or the whole usage if that is less.
func (h *Holder) Give(n int) {
	if h == nil {
		return
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if n = min(n, h.used); n > 0 {
		h.add(-n)
	}
}

// MoveTo moves the usage to another holder, regardless of the bounds of that one,
// and returns it.
func (h *Holder) MoveTo(other *Holder) *Holder {
	other.Force(h.InUse())
	h.Clear()
	return other
}

// Clear returns the whole usage.
func (h *Holder) Clear() { h.Give(math.MaxInt) }

func (h *Holder) add(n int) {
	h.used += n
	h.of.add(h.party, n)
}
