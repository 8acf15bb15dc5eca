// A group of many members over many partitions, and how long its partitions are without an owner:
// client BOOTSTRAP scale PROTOCOL MEMBERS PARTITIONS SESSION_MS
//
// PROTOCOL is eager, cooperative or consumer. Members come, then one more joins, one leaves, and one dies: its
// connections end and it says nothing. After each of these a line tells what the members saw in their own
// callbacks, in milliseconds:
//
//	WHAT settled N moved N longest N mean N stopped N twice N
//
// settled: until everything was owned, evenly, and nothing moved any more. moved: partitions that had no owner for
// a while; longest and mean: for how long, the mean over all partitions. stopped: how long nothing at all was owned.
// twice: partitions that somebody got while another still had them.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const scaleTopic = "scale"

// How long nothing may move before a group counts as settled, and how long it may take.
const (
	quiet   = 2 * time.Second
	patient = 3 * time.Minute
)

// board keeps who owns what, as the members say it.
type board struct {
	sync.Mutex
	owner     []int
	freeSince []time.Time
	count     map[int]int
	owned     int
	changed   time.Time
	gap       []time.Duration
	noneSince time.Time
	stopped   time.Duration
	twice     int
}

const nobody = -1

func newBoard(partitions int) *board {
	b := &board{owner: make([]int, partitions), freeSince: make([]time.Time, partitions), count: map[int]int{}}
	for partition := range b.owner {
		b.owner[partition] = nobody
	}
	b.begin(time.Now())
	return b
}

// begin forgets what was before.
func (b *board) begin(now time.Time) {
	b.Lock()
	defer b.Unlock()
	b.gap = make([]time.Duration, len(b.owner))
	b.stopped, b.twice, b.changed, b.noneSince = 0, 0, now, now
	for partition := range b.freeSince {
		b.freeSince[partition] = now
	}
}

func (b *board) takes(member int, partitions []int32) {
	now := time.Now()
	b.Lock()
	defer b.Unlock()
	if b.owned == 0 && len(partitions) > 0 {
		b.stopped += now.Sub(b.noneSince)
	}
	for _, partition := range partitions {
		switch b.owner[partition] {
		case member:
			continue
		case nobody:
			b.gap[partition] += now.Sub(b.freeSince[partition])
			b.owned++
		default:
			b.count[b.owner[partition]]--
			b.twice++
		}
		b.owner[partition] = member
		b.count[member]++
		b.changed = now
	}
}

func (b *board) gives(member int, partitions []int32) {
	now := time.Now()
	b.Lock()
	defer b.Unlock()
	for _, partition := range partitions {
		if b.owner[partition] != member {
			continue
		}
		b.owner[partition], b.freeSince[partition] = nobody, now
		b.count[member]--
		b.owned--
		b.changed = now
	}
	if b.owned == 0 && len(partitions) > 0 {
		b.noneSince = now
	}
}

// all that a member owns.
func (b *board) all(member int) []int32 {
	b.Lock()
	defer b.Unlock()
	var all []int32
	for partition, owner := range b.owner {
		if owner == member {
			all = append(all, int32(partition))
		}
	}
	return all
}

// settled tells whether so many members own everything, evenly, and since when.
func (b *board) settled(members int) (time.Time, bool) {
	b.Lock()
	defer b.Unlock()
	least, owners := len(b.owner)/members, 0
	for _, count := range b.count {
		if count == 0 {
			continue
		}
		owners++
		if count < least || count > least+1 {
			return b.changed, false
		}
	}
	return b.changed, b.owned == len(b.owner) && owners == members
}

func (b *board) report(what string, began time.Time, members int) {
	end := time.Now().Add(patient)
	changed, settled := b.settled(members)
	for !settled || time.Since(changed) < quiet {
		if time.Now().After(end) {
			b.Lock()
			defer b.Unlock()
			fail(fmt.Sprintf("%s: %d members do not settle; %d partitions are owned: %v", what, members, b.owned, b.count))
		}
		time.Sleep(5 * time.Millisecond)
		changed, settled = b.settled(members)
	}
	b.Lock()
	defer b.Unlock()
	moved, longest, sum := 0, time.Duration(0), time.Duration(0)
	for _, gap := range b.gap {
		if gap > 0 {
			moved++
		}
		longest = max(longest, gap)
		sum += gap
	}
	mean := sum / time.Duration(len(b.gap))
	fmt.Println(what, "settled", changed.Sub(began).Milliseconds(), "moved", moved, "longest", longest.Milliseconds(),
		"mean", mean.Milliseconds(), "stopped", b.stopped.Milliseconds(), "twice", b.twice)
}

// seat is a member and its connections.
type seat struct {
	sync.Mutex
	client      *kgo.Client
	connections []net.Conn
	dead        bool
}

func (s *seat) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s.Lock()
	defer s.Unlock()
	if s.dead {
		connection.Close()
		return nil, errors.New("dead")
	}
	s.connections = append(s.connections, connection)
	return connection, nil
}

// die ends it as a crash of its process would.
func (s *seat) die() {
	s.Lock()
	defer s.Unlock()
	s.dead = true
	for _, connection := range s.connections {
		connection.Close()
	}
}

func (s *seat) isDead() bool {
	s.Lock()
	defer s.Unlock()
	return s.dead
}

type hall struct {
	bootstrap, protocol string
	session             time.Duration
	board               *board
	seats               []*seat
}

func (h *hall) join() {
	number, seat := len(h.seats), &seat{}
	gives := func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		if !seat.isDead() {
			h.board.gives(number, partitions[scaleTopic])
		}
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(h.bootstrap),
		kgo.ConsumerGroup("scale-" + h.protocol),
		kgo.ConsumeTopics(scaleTopic),
		kgo.SessionTimeout(h.session),
		kgo.Dialer(seat.dial),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			if !seat.isDead() {
				h.board.takes(number, partitions[scaleTopic])
			}
		}),
		kgo.OnPartitionsRevoked(gives),
		kgo.OnPartitionsLost(gives),
	}
	switch h.protocol {
	case "eager":
		options = append(options, kgo.Balancers(kgo.RangeBalancer()))
	case "cooperative":
		options = append(options, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	case "consumer":
		options = append(options, kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer())
	default:
		fail("a protocol is eager, cooperative or consumer")
	}
	seat.client = open(options...)
	h.seats = append(h.seats, seat)
}

func scale(bootstrap, protocol string, members, partitions int, session time.Duration) {
	admin := open(kgo.SeedBrokers(bootstrap))
	defer admin.Close()
	_, err := kadm.NewClient(admin).CreateTopic(context.Background(), int32(partitions), 1, nil, scaleTopic)
	check(err, "the topic")
	h := &hall{bootstrap: bootstrap, protocol: protocol, session: session, board: newBoard(partitions)}
	step := func(what string, members int, do func()) {
		began := time.Now()
		h.board.begin(began)
		do()
		h.board.report(what, began, members)
	}
	step("together", members, func() {
		for range members {
			h.join()
		}
	})
	step("joins", members+1, h.join)
	step("leaves", members, func() {
		leaving := h.seats[1]
		leaving.client.LeaveGroup()
	})
	step("dies", members-1, func() {
		dying := h.seats[members/2]
		lost := h.board.all(members / 2)
		dying.die()
		h.board.gives(members/2, lost)
	})
	os.Exit(0)
}
