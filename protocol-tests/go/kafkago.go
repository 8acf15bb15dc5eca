// A member of a group by kafka-go; see python/member.py for what it says.
package main

import (
	"bufio"
	"context"
	"os"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

func kafkaGoMember(bootstrap, topic, name string) {
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                name,
		Brokers:           []string{bootstrap},
		Topics:            []string{topic},
		GroupBalancers:    []kafka.GroupBalancer{kafka.RangeGroupBalancer{}},
		SessionTimeout:    6 * time.Second,
		RebalanceTimeout:  6 * time.Second,
		HeartbeatInterval: 500 * time.Millisecond,
		JoinGroupBackoff:  200 * time.Millisecond,
		StartOffset:       kafka.FirstOffset,
	})
	check(err, "a member")
	ctx, stop := context.WithCancel(context.Background())
	left := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		stop()
		// It ends the generation, and waits until nobody reads any more.
		check(group.Close(), "leaving")
		close(left)
	}()
	for ctx.Err() == nil {
		generation, err := group.Next(ctx)
		if err != nil {
			say("note", "no generation:", err)
			continue
		}
		var partitions []int32
		for _, assigned := range generation.Assignments[topic] {
			partitions = append(partitions, int32(assigned.ID))
		}
		say("assigned", list(partitions))
		var reading sync.WaitGroup
		for _, assigned := range generation.Assignments[topic] {
			reading.Add(1)
			generation.Start(func(generationCtx context.Context) {
				defer reading.Done()
				follow(generationCtx, bootstrap, topic, generation, assigned)
			})
		}
		reading.Wait()
	}
	<-left
	say("note", "closed")
}

// Reads a partition for as long as a generation lasts.
func follow(ctx context.Context, bootstrap, topic string, generation *kafka.Generation, of kafka.PartitionAssignment) {
	defer say("revoked", of.ID)
	if ctx.Err() != nil {
		return
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:        []string{bootstrap},
		Topic:          topic,
		Partition:      of.ID,
		MinBytes:       1,
		MaxBytes:       1 << 20,
		MaxWait:        100 * time.Millisecond,
		ReadBackoffMin: 10 * time.Millisecond,
		ReadBackoffMax: 200 * time.Millisecond,
		QueueCapacity:  1,
	})
	defer reader.Close()
	check(reader.SetOffset(of.Offset), "an offset")
	for {
		message, err := reader.ReadMessage(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			say("note", "nothing is read:", err)
			continue
		}
		say("got", message.Partition, message.Offset, string(message.Value))
		next := message.Offset + 1
		if err := generation.CommitOffsets(map[string]map[int]int64{topic: {of.ID: next}}); err != nil {
			say("note", "a commit is refused:", err)
			continue
		}
		say("committed", of.ID, next)
	}
}
