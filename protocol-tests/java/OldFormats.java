// Writes segments of the message formats before 0.11 with Apache Kafka's own classes:
// OldFormats FOLDER TIME, where TIME is that of the first record
//
// For each kind it makes FOLDER/KIND-0 with segments, the last of which has one batch of magic 2 and is not
// compacted. Kinds that begin with "bad-" hold what no broker writes; they have empty indexes, so that nobody
// looks into them before they are compacted.
//
// OldFormats convert FILE...: writes segments of magic 2 anew as magic 1.

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32;
import java.util.zip.GZIPOutputStream;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;

public class OldFormats {
    static Path root;
    static long start;

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("convert")) {
            for (String file : Arrays.asList(arguments).subList(1, arguments.length)) {
                convert(Path.of(file));
            }
            return;
        }
        root = Path.of(arguments[0]);
        start = Long.parseLong(arguments[1]);
        for (CompressionType codec : CompressionType.values()) {
            if (codec != CompressionType.ZSTD) {
                everyKey("magic0-" + codec.name, 0, codec, TimestampType.CREATE_TIME);
                everyKey("magic1-" + codec.name, 1, codec, TimestampType.CREATE_TIME);
                everyKey("magic1-appended-" + codec.name, 1, codec, TimestampType.LOG_APPEND_TIME);
            }
        }
        mixed();
        gaps();
        innerMagic();
        unusual();
        for (String kind : List.of("crc", "nested", "zstd", "null", "empty", "codec", "gzip", "size", "cut",
                "backwards", "inner-backwards", "wrapper-offset", "time", "key-size", "value-size",
                "dropped-value-size", "beyond", "below", "keyless-end", "magic")) {
            bad(kind);
        }
    }

    static void convert(Path file) throws IOException {
        ByteArrayOutputStream converted = new ByteArrayOutputStream();
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(file)));
        for (RecordBatch batch : records.batches()) {
            List<SimpleRecord> messages = new ArrayList<>();
            List<Long> offsets = new ArrayList<>();
            for (Record record : batch) {
                messages.add(new SimpleRecord(record.timestamp(), record.key(), record.value()));
                offsets.add(record.offset());
            }
            converted.writeBytes(batch(1, CompressionType.GZIP, TimestampType.CREATE_TIME, offsets.get(0),
                offsets.stream().mapToLong(Long::longValue).toArray(), messages.toArray(new SimpleRecord[0])));
        }
        Files.write(file, converted.toByteArray());
    }

    /** The segments of a partition. */
    static class Log {
        final Path folder;
        final List<Long> bases = new ArrayList<>();
        ByteArrayOutputStream segment = new ByteArrayOutputStream();
        long base;
        long next;

        Log(String kind) throws IOException {
            folder = Files.createDirectories(root.resolve(kind + "-0"));
        }

        void add(byte[] bytes, long next) {
            segment.writeBytes(bytes);
            this.next = next;
        }

        void roll() throws IOException {
            write("log", segment.toByteArray());
            if (folder.getFileName().toString().startsWith("bad-")) {
                write("index", new byte[0]);
                write("timeindex", new byte[0]);
            }
            segment = new ByteArrayOutputStream();
            base = next;
        }

        void write(String kind, byte[] content) throws IOException {
            Files.write(folder.resolve(String.format("%020d.%s", base, kind)), content);
        }

        void end() throws IOException {
            roll();
            add(batch(2, CompressionType.NONE, TimestampType.CREATE_TIME, base,
                new long[] {base}, record(999, "end", "end")), base + 1);
            roll();
        }
    }

    static SimpleRecord record(int n, String key, String value) {
        return new SimpleRecord(start + n * 1000L, key == null ? null : key.getBytes(StandardCharsets.UTF_8),
            value == null ? null : value.getBytes(StandardCharsets.UTF_8));
    }

    static byte[] batch(int magic, CompressionType codec, TimestampType type, long base, long[] offsets,
            SimpleRecord... records) {
        long appended = records[records.length - 1].timestamp() + 500;
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 16), (byte) magic,
            Compression.of(codec).build(), type, base, appended);
        for (int n = 0; n < records.length; n++) {
            builder.appendWithOffset(offsets[n], records[n]);
        }
        ByteBuffer buffer = builder.build().buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    static long[] from(long base, int count) {
        long[] offsets = new long[count];
        for (int n = 0; n < count; n++) {
            offsets[n] = base + n;
        }
        return offsets;
    }

    /** Keys that come again, tombstones, records without key, empty keys and values. */
    static SimpleRecord someRecord(int n) {
        String value = "value " + n + " " + "x".repeat(n % 40);
        return switch (n % 11) {
            case 3 -> record(n, n % 2 == 0 ? "key-" + n % 5 : "gone-" + n, null);
            case 5 -> record(n, null, value);
            case 7 -> record(n, "", value);
            case 8 -> record(n, "empty-" + n % 3, "");
            case 9 -> record(n, null, null);
            default -> record(n, "key-" + n % 17, value);
        };
    }

    static void everyKey(String kind, int magic, CompressionType codec, TimestampType type) throws IOException {
        Log log = new Log(kind);
        for (int step = 0; step < 24; step++) {
            SimpleRecord[] records = new SimpleRecord[1 + step % 4];
            for (int n = 0; n < records.length; n++) {
                // Times do not only grow.
                records[n] = someRecord(step * 4 + n ^ 1);
            }
            log.add(batch(magic, codec, type, log.next, from(log.next, records.length), records),
                log.next + records.length);
            if (step % 7 == 6) {
                log.roll();
            }
        }
        log.add(batch(magic, codec, type, log.next, from(log.next, 1), record(500, "last", "of all")), log.next + 1);
        log.end();
    }

    /** All formats one after the other: what the newer say of a key counts, whatever the format. */
    static void mixed() throws IOException {
        Log log = new Log("mixed");
        CompressionType[] codecs = {CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4};
        for (int step = 0; step < 36; step++) {
            SimpleRecord[] records = {someRecord(step), someRecord(step + 1), someRecord(step + 2)};
            log.add(batch(step % 3, codecs[step % 4], TimestampType.CREATE_TIME, log.next, from(log.next, 3), records),
                log.next + 3);
            if (step % 10 == 9) {
                log.roll();
            }
        }
        log.add(batch(1, CompressionType.NONE, TimestampType.CREATE_TIME, log.next, from(log.next, 1),
            record(500, "last", "of all")), log.next + 1);
        log.end();
    }

    /** What an old broker's compaction has left: offsets are missing, between batches and within. */
    static void gaps() throws IOException {
        for (int magic = 0; magic < 2; magic++) {
            Log log = new Log("gaps" + magic);
            for (int step = 0; step < 6; step++) {
                long at = log.next + 3;
                log.add(batch(magic, CompressionType.GZIP, TimestampType.CREATE_TIME, at,
                    new long[] {at, at + 2, at + 7}, record(step, "a" + step, "1"), record(step, "b", "2"),
                    record(step, step == 4 ? "d" : "c", step == 3 ? null : "3")), at + 10);
            }
            log.add(batch(magic, CompressionType.NONE, TimestampType.CREATE_TIME, log.next, from(log.next, 1),
                record(500, "last", "of all")), log.next + 1);
            log.end();
        }
    }

    /** A message by hand, whatever its fields say. */
    static byte[] message(long offset, int magic, int attributes, long timestamp, byte[] key, byte[] value)
            throws IOException {
        return message(offset, magic, attributes, timestamp, key, key == null ? -1 : key.length, value,
            value == null ? -1 : value.length);
    }

    static byte[] message(long offset, int magic, int attributes, long timestamp, byte[] key, int keySize,
            byte[] value, int valueSize) throws IOException {
        ByteArrayOutputStream checked = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(checked);
        out.writeByte(magic);
        out.writeByte(attributes);
        if (magic > 0) {
            out.writeLong(timestamp);
        }
        out.writeInt(keySize);
        out.write(key == null ? new byte[0] : key);
        out.writeInt(valueSize);
        out.write(value == null ? new byte[0] : value);
        CRC32 crc = new CRC32();
        crc.update(checked.toByteArray());
        ByteArrayOutputStream whole = new ByteArrayOutputStream();
        out = new DataOutputStream(whole);
        out.writeLong(offset);
        out.writeInt(checked.size() + 4);
        out.writeInt((int) crc.getValue());
        out.write(checked.toByteArray());
        return whole.toByteArray();
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static byte[] plain(long offset, int magic, String key, String value) throws IOException {
        return message(offset, magic, 0, start + offset, key == null ? null : bytes(key), value == null ? null : bytes(value));
    }

    static byte[] gzip(byte[]... parts) throws IOException {
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        try (GZIPOutputStream out = new GZIPOutputStream(packed)) {
            for (byte[] part : parts) {
                out.write(part);
            }
        }
        return packed.toByteArray();
    }

    static byte[] wrapper(long offset, int magic, byte[] value) throws IOException {
        return message(offset, magic, CompressionType.GZIP.id, start + 77, null, value);
    }

    /** Wrappers that hold messages of another format. */
    static void innerMagic() throws IOException {
        Log log = new Log("inner-magic");
        log.add(wrapper(2, 1, gzip(plain(0, 0, "a", "1"), plain(1, 1, "b", "1"), plain(2, 0, "c", "1"))), 3);
        log.add(wrapper(5, 0, gzip(plain(3, 1, "a", "2"), plain(4, 0, "d", "2"), plain(5, 1, "e", "2"))), 6);
        byte[] stamped = message(8, 1, CompressionType.GZIP.id | 8, start + 99, null,
            gzip(plain(0, 0, "f", "3"), plain(1, 1, "g", null), plain(2, 1, "c", "3")));
        log.add(stamped, 9);
        // A clock that magic 0 cannot name.
        log.add(message(9, 0, 8, 0, bytes("h"), bytes("4")), 10);
        // Bytes behind the value are nobody's.
        log.add(message(10, 1, 0, start + 5, bytes("i"), 1, bytes("42222"), 1), 11);
        log.add(plain(11, 1, "last", "of all"), 12);
        log.end();
    }

    /** What is strange and yet read: a base that is not 0, a message that is cut off at a wrapper's end. */
    static void unusual() throws IOException {
        Log log = new Log("unusual");
        log.add(wrapper(9, 1, gzip(plain(4, 1, "a", "1"), plain(6, 1, "b", "1"))), 10);
        byte[] cut = plain(2, 1, "c", "1");
        log.add(wrapper(12, 1, gzip(plain(0, 1, "d", "1"), plain(1, 1, "e", "1"), Arrays.copyOf(cut, 20))), 13);
        log.add(wrapper(15, 1, gzip(plain(0, 1, "f", "1"), plain(1, 1, "g", "1"), Arrays.copyOf(cut, 30))), 16);
        log.add(message(16, 1, 0, -1, bytes("h"), bytes("1")), 17);
        log.add(message(17, 1, 0, start, bytes("i"), 1, null, -9), 18);
        log.add(message(18, 1, 0, start, null, -7, bytes("x"), 1), 19);
        log.add(plain(19, 0, "last", "of all"), 20);
        log.end();
    }

    static void bad(String kind) throws IOException {
        Log log = new Log("bad-" + kind);
        log.add(plain(0, 1, "a", "1"), 1);
        byte[] one = plain(0, 1, "x", "1");
        byte[] bad = switch (kind) {
            case "crc" -> {
                byte[] bytes = plain(1, 1, "x", "1");
                bytes[bytes.length - 1]++;
                yield bytes;
            }
            case "nested" -> wrapper(1, 1, gzip(wrapper(0, 1, gzip(one))));
            case "zstd" -> message(1, 1, CompressionType.ZSTD.id, start, null, gzip(one));
            case "null" -> message(1, 1, CompressionType.GZIP.id, start, null, null);
            case "empty" -> wrapper(1, 1, gzip());
            case "codec" -> message(1, 1, 5, start, null, gzip(one));
            case "gzip" -> wrapper(1, 1, Arrays.copyOf(gzip(one), 30));
            case "size" -> wrapper(1, 1, gzip(one, ByteBuffer.allocate(30).putLong(1).putInt(13).array()));
            case "cut" -> wrapper(1, 1, gzip(Arrays.copyOf(one, 20)));
            case "backwards" -> {
                ByteArrayOutputStream three = new ByteArrayOutputStream();
                three.writeBytes(plain(5, 1, "x", "1"));
                three.writeBytes(plain(3, 1, "y", "1"));
                three.writeBytes(plain(7, 1, "z", "1"));
                yield three.toByteArray();
            }
            case "inner-backwards" -> wrapper(5, 0, gzip(plain(4, 0, "x", "1"), plain(2, 0, "y", "1"), plain(5, 0, "z", "1")));
            case "wrapper-offset" -> wrapper(2, 1, gzip(plain(1, 1, "x", "1"), plain(4, 1, "y", "1")));
            case "time" -> message(1, 1, 0, -5, bytes("x"), bytes("1"));
            case "key-size" -> message(1, 1, 0, start, bytes("x"), 1 << 30, bytes("1"), 1);
            case "value-size" -> message(1, 1, 0, start, bytes("x"), 1, bytes("1"), 1 << 30);
            case "dropped-value-size" -> message(1, 1, 0, start, bytes("end"), 3, bytes("1"), 1 << 30);
            case "beyond" -> wrapper(2, 0, gzip(plain(1, 0, "x", "1"), plain(1000, 0, "y", "1")));
            case "below" -> wrapper(9, 0, gzip(plain(-3, 0, "x", "1"), plain(9, 0, "y", "1")));
            case "keyless-end" -> plain(1, 1, null, "1");
            case "magic" -> wrapper(1, 1, gzip(message(0, 2, 0, start, bytes("x"), bytes("1"))));
            default -> throw new IllegalArgumentException(kind);
        };
        log.add(bad, 20);
        if (kind.equals("dropped-value-size")) {
            log.add(plain(19, 1, "end", "1"), 20);
        }
        if (kind.equals("keyless-end")) {
            log.next = 2;
        } else {
            log.roll();
            log.add(plain(20, 1, "last", "of all"), 21);
        }
        log.end();
    }
}
