// franz-go: client BOOTSTRAP write|read TOPICS... or client BOOTSTRAP member TOPIC GROUP eager|cooperative
// kafka-go: client BOOTSTRAP kafka-go-member TOPIC GROUP; a group of many: scale.go
// The story is that of python/story.py, the tasks are those of python/kafka_python_client.py.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	recordCount = 30
	firstTime   = int64(1_700_000_000_000)
)

var codecs = []struct {
	name  string
	codec kgo.CompressionCodec
}{
	{"none", kgo.NoCompression()},
	{"gzip", kgo.GzipCompression()},
	{"snappy", kgo.SnappyCompression()},
	{"lz4", kgo.Lz4Compression()},
	{"zstd", kgo.ZstdCompression()},
}

func main() {
	bootstrap, task := os.Args[1], os.Args[2]
	if task == "member" {
		member(bootstrap, os.Args[3], os.Args[4], os.Args[5])
		return
	}
	if task == "scale" {
		number := func(at int) int {
			number, err := strconv.Atoi(os.Args[at])
			check(err, "a number")
			return number
		}
		scale(bootstrap, os.Args[3], number(4), number(5), time.Duration(number(6))*time.Millisecond)
		return
	}
	if task == "kafka-go-member" {
		kafkaGoMember(bootstrap, os.Args[3], os.Args[4])
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if task == "write" {
		write(ctx, bootstrap)
	} else {
		read(ctx, bootstrap, os.Args[3:])
	}
	fmt.Println("all is as it should be")
}

func record(topic string, number int) *kgo.Record {
	record := &kgo.Record{
		Topic:     topic,
		Partition: 0,
		Key:       []byte(fmt.Sprintf("key %d", number)),
		Value:     []byte(strings.Repeat(fmt.Sprintf("%s %d ünï ", topic, number), number*7%40+1)),
		Headers:   []kgo.RecordHeader{{Key: "h", Value: []byte(fmt.Sprint(number))}},
		Timestamp: time.UnixMilli(firstTime + 1000*int64(number)),
	}
	switch number % 10 {
	case 5:
		record.Value = nil
	case 6:
		record.Value = []byte{}
	case 7:
		record.Key = nil
	}
	return record
}

func write(ctx context.Context, bootstrap string) {
	client := open(kgo.SeedBrokers(bootstrap))
	defer client.Close()
	admin := kadm.NewClient(client)
	for _, codec := range codecs {
		topic := "franz-go-" + codec.name
		_, err := admin.CreateTopic(ctx, 2, 1, nil, topic)
		check(err, "creating "+topic)
		produce(ctx, bootstrap, topic, codec.codec)
		lookUp(ctx, admin, topic)
	}
	administer(ctx, admin)
}

func open(options ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(options...)
	check(err, "a client")
	return client
}

func produce(ctx context.Context, bootstrap, topic string, codec kgo.CompressionCodec) {
	client := open(
		kgo.SeedBrokers(bootstrap),
		kgo.ProducerBatchCompression(codec),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(20*time.Millisecond),
	)
	defer client.Close()
	var records []*kgo.Record
	for number := range recordCount {
		records = append(records, record(topic, number))
	}
	for number, result := range client.ProduceSync(ctx, records...) {
		check(result.Err, "producing to "+topic)
		same(result.Record.Offset, int64(number), topic+": the offset of a delivery")
	}
}

func read(ctx context.Context, bootstrap string, topics []string) {
	for _, from := range []int{0, 17} {
		offsets := map[string]map[int32]kgo.Offset{}
		for _, topic := range topics {
			offsets[topic] = map[int32]kgo.Offset{0: kgo.NewOffset().At(int64(from))}
		}
		client := open(kgo.SeedBrokers(bootstrap), kgo.ConsumePartitions(offsets))
		next := map[string]int{}
		for missing := len(topics) * (recordCount - from); missing > 0; {
			fetches := client.PollFetches(ctx)
			for _, problem := range fetches.Errors() {
				check(problem.Err, fmt.Sprintf("fetching %s-%d; %d are missing", problem.Topic, problem.Partition, missing))
			}
			fetches.EachRecord(func(got *kgo.Record) {
				compare(got, from+next[got.Topic])
				next[got.Topic]++
				missing--
			})
		}
		client.Close()
	}
}

func compare(got *kgo.Record, number int) {
	at := fmt.Sprintf("%s@%d", got.Topic, number)
	wanted := record(got.Topic, number)
	same(got.Offset, int64(number), at+": offset")
	same(got.Timestamp.UnixMilli(), wanted.Timestamp.UnixMilli(), at+": timestamp")
	same((got.Key == nil), (wanted.Key == nil), at+": whether it has a key")
	same((got.Value == nil), (wanted.Value == nil), at+": whether it has a value")
	same(bytes.Equal(got.Key, wanted.Key), true, at+": key")
	same(bytes.Equal(got.Value, wanted.Value), true, at+": value")
	same(len(got.Headers), 1, at+": headers")
	same(got.Headers[0].Key+string(got.Headers[0].Value), "h"+fmt.Sprint(number), at+": header")
}

func lookUp(ctx context.Context, admin *kadm.Client, topic string) {
	offset := func(what string, listed kadm.ListedOffsets, err error, partition int32) int64 {
		check(err, topic+": "+what)
		found, ok := listed.Lookup(topic, partition)
		same(ok, true, topic+": "+what)
		check(found.Err, topic+": "+what)
		return found.Offset
	}
	listed, err := admin.ListStartOffsets(ctx, topic)
	same(offset("starts", listed, err, 0), int64(0), topic+": start")
	listed, err = admin.ListEndOffsets(ctx, topic)
	same(offset("ends", listed, err, 0), int64(recordCount), topic+": end")
	same(offset("ends", listed, err, 1), int64(0), topic+"-1: end")
	listed, err = admin.ListMaxTimestampOffsets(ctx, topic)
	same(offset("latest times", listed, err, 0), int64(recordCount-1), topic+": the latest time's offset")
	listed, err = admin.ListOffsetsAfterMilli(ctx, firstTime+4_500, topic)
	same(offset("by time", listed, err, 0), int64(5), topic+": by time")
}

func administer(ctx context.Context, admin *kadm.Client) {
	topic := "franz-go-changed"
	retention := "86400001"
	created, err := admin.CreateTopic(ctx, 1, 1, map[string]*string{"retention.ms": &retention}, topic)
	check(err, "creating "+topic)
	_, err = admin.CreateTopic(ctx, 1, 1, nil, topic)
	same(errors.Is(err, kerr.TopicAlreadyExists), true, "a topic is created once")
	grown, err := admin.CreatePartitions(ctx, 2, topic)
	check(err, "more partitions")
	check(grown.Error(), "more partitions")
	details, err := admin.ListTopics(ctx, topic)
	check(err, "listing")
	// Apache Kafka answers before its broker has heard of them.
	for len(details[topic].Partitions) == 1 && ctx.Err() == nil {
		details, err = admin.ListTopics(ctx, topic)
		check(err, "listing")
	}
	same(len(details[topic].Partitions), 3, "partitions")
	same(details[topic].ID, created.ID, "the topic's id")
	configs, err := admin.DescribeTopicConfigs(ctx, topic)
	check(err, "configs")
	found, err := configs.On(topic, nil)
	check(err, "configs")
	value := ""
	for _, config := range found.Configs {
		if config.Key == "retention.ms" {
			value = config.MaybeValue()
		}
	}
	same(value, retention, "retention.ms")
	deleted, err := admin.DeleteTopics(ctx, topic)
	check(err, "deleting")
	check(deleted.Error(), "deleting")
	deleted, err = admin.DeleteTopics(ctx, topic)
	check(err, "deleting again")
	same(errors.Is(deleted.Error(), kerr.UnknownTopicOrPartition), true, "a topic is deleted once")
}

func check(err error, what string) {
	if err != nil {
		fail(what + ": " + err.Error())
	}
}

func same[T comparable](got, wanted T, what string) {
	if got != wanted {
		fail(fmt.Sprintf("%s: %v in place of %v", what, got, wanted))
	}
}

func fail(what string) {
	fmt.Fprintln(os.Stderr, what)
	os.Exit(1)
}
