package mcp

import (
	"sync"
	"time"
)

// clock is a time-out that stands still while a person is asked.
type clock struct {
	mu    sync.Mutex
	timer *time.Timer
	left  time.Duration
	since time.Time
	held  int
}

// newClock calls expired once d has passed, pauses not counted.
func newClock(d time.Duration, expired func()) *clock {
	return &clock{timer: time.AfterFunc(d, expired), left: d, since: time.Now()}
}

// hold stops the clock until release has been called as often.
func (c *clock) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held++; c.held == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
}

func (c *clock) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held--; c.held == 0 && c.left > 0 {
		c.since = time.Now()
		c.timer.Reset(c.left)
	}
}

// stop ends the clock for good.
func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held++ // no release starts it again
	c.timer.Stop()
}
