// A member of a group; see python/member.py for what it says.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func say(words ...any) {
	fmt.Println(append([]any{time.Now().UnixMicro()}, words...)...)
}

func list(partitions []int32) string {
	sort.Slice(partitions, func(one, other int) bool { return partitions[one] < partitions[other] })
	words := make([]string, len(partitions))
	for at, partition := range partitions {
		words[at] = fmt.Sprint(partition)
	}
	return strings.Join(words, ",")
}

func member(bootstrap, topic, group, strategy string) {
	balancers := []kgo.GroupBalancer{kgo.RangeBalancer()}
	if strategy == "cooperative" {
		balancers = []kgo.GroupBalancer{kgo.CooperativeStickyBalancer()}
	}
	revoked := func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		say("revoked", list(partitions[topic]))
	}
	client := open(
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.Balancers(balancers...),
		kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			say("assigned", list(partitions[topic]))
		}),
		kgo.OnPartitionsRevoked(revoked),
		kgo.OnPartitionsLost(revoked),
	)
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		stop()
	}()
	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, 20)
		fetches.EachPartition(func(of kgo.FetchTopicPartition) {
			if len(of.Records) == 0 {
				return
			}
			for _, record := range of.Records {
				say("got", record.Partition, record.Offset, string(record.Value))
			}
			if err := client.CommitRecords(context.Background(), of.Records...); err != nil {
				say("note", "a commit is refused:", err)
				return
			}
			say("committed", of.Partition, of.Records[len(of.Records)-1].Offset+1)
		})
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
	say("note", "closed")
}
