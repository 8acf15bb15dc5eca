import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.assignor.*;
import org.apache.kafka.coordinator.group.modern.*;

/**
 * Writes assignors.txt: what Apache Kafka 4.1.2's assignors say to groups that change step by step.
 *
 * java -cp "$HOME/.cache/barnabas/test-tools/kafka/*" Assignors.java > assignors.txt
 */
public class Assignors {
    static class Member {
        String instance;
        TreeSet<Integer> topics = new TreeSet<>();
        TreeMap<Uuid, Set<Integer>> target = new TreeMap<>();
    }

    public static void main(String[] args) {
        Random random = new Random(848);
        for (int story = 0; story < 24; story++) {
            ConsumerGroupPartitionAssignor assignor = story % 3 == 0 ? new RangeAssignor() : new UniformAssignor();
            boolean same = story % 2 == 0;
            TreeMap<Integer, Integer> topics = new TreeMap<>();
            int topicCount = 1 + random.nextInt(5);
            for (int t = 1; t <= topicCount; t++) topics.put(t, 1 + random.nextInt(12));
            TreeMap<String, Member> members = new TreeMap<>();
            TreeSet<Integer> all = new TreeSet<>(topics.keySet());
            for (int step = 0; step < 7; step++) {
                int what = step == 0 ? 0 : random.nextInt(4);
                if (what == 0 || members.isEmpty()) {
                    int joining = 1 + random.nextInt(4);
                    for (int i = 0; i < joining; i++) {
                        Member member = new Member();
                        if (random.nextInt(3) == 0) member.instance = "i" + random.nextInt(1000);
                        member.topics = same ? new TreeSet<>(all) : some(random, all);
                        members.put("m" + random.nextInt(1000), member);
                    }
                } else if (what == 1 && members.size() > 1) {
                    members.remove(new ArrayList<>(members.keySet()).get(random.nextInt(members.size())));
                } else if (what == 2) {
                    int t = new ArrayList<>(topics.keySet()).get(random.nextInt(topics.size()));
                    topics.put(t, topics.get(t) + 1 + random.nextInt(4));
                } else {
                    TreeSet<Integer> fewer = some(random, all);
                    for (Member member : members.values()) member.topics = same ? new TreeSet<>(fewer) : some(random, all);
                }
                show(assignor, topics, members);
            }
        }
    }

    static TreeSet<Integer> some(Random random, TreeSet<Integer> all) {
        TreeSet<Integer> some = new TreeSet<>();
        for (int t : all) if (random.nextInt(3) > 0) some.add(t);
        if (some.isEmpty()) some.add(all.first());
        return some;
    }

    static Uuid id(int t) {
        return new Uuid(0, t);
    }

    static void show(ConsumerGroupPartitionAssignor assignor, TreeMap<Integer, Integer> topics, TreeMap<String, Member> members) {
        TreeMap<String, MemberSubscriptionAndAssignmentImpl> specs = new TreeMap<>();
        TreeMap<Uuid, Map<Integer, String>> owners = new TreeMap<>();
        boolean homogeneous = true;
        TreeSet<Integer> first = members.firstEntry().getValue().topics;
        for (Map.Entry<String, Member> entry : members.entrySet()) {
            Member member = entry.getValue();
            homogeneous &= member.topics.equals(first);
            TreeSet<Uuid> ids = new TreeSet<>();
            for (int t : member.topics) ids.add(id(t));
            specs.put(entry.getKey(), new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.ofNullable(member.instance), ids,
                new Assignment(Collections.unmodifiableMap(member.target))));
            member.target.forEach((topic, partitions) -> partitions.forEach(p ->
                owners.computeIfAbsent(topic, k -> new HashMap<>()).put(p, entry.getKey())));
        }
        GroupSpec spec = new GroupSpecImpl(Collections.unmodifiableMap(specs),
            homogeneous ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS, owners);
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid topicId) {
                return topics.getOrDefault((int) topicId.getLeastSignificantBits(), -1);
            }
            public Set<String> racksForPartition(Uuid topicId, int partition) {
                return Set.of();
            }
            public Set<Integer> assignablePartitions(Uuid topicId) {
                return Set.of();
            }
        };
        GroupAssignment result = assignor.assign(spec, describer);
        System.out.println("group " + assignor.name());
        topics.forEach((t, n) -> System.out.println("topic " + t + " " + n));
        members.forEach((id, member) -> {
            MemberAssignment assigned = result.members().get(id);
            TreeMap<Uuid, Set<Integer>> target = new TreeMap<>();
            if (assigned != null) assigned.partitions().forEach((topic, partitions) -> {
                if (!partitions.isEmpty()) target.put(topic, new TreeSet<>(partitions));
            });
            StringJoiner wanted = new StringJoiner(",");
            member.topics.forEach(t -> wanted.add("" + t));
            System.out.println("member " + id + " " + (member.instance == null ? "-" : member.instance)
                + " " + wanted + " " + text(member.target) + " " + text(target));
            member.target = target;
        });
    }

    static String text(TreeMap<Uuid, Set<Integer>> assignment) {
        if (assignment.isEmpty()) return "-";
        StringJoiner topics = new StringJoiner(";");
        assignment.forEach((topic, partitions) -> {
            StringJoiner list = new StringJoiner(",");
            partitions.forEach(p -> list.add("" + p));
            topics.add(topic.getLeastSignificantBits() + ":" + list);
        });
        return topics.toString();
    }
}
