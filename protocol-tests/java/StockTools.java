// Runs stock tools one after the other in one virtual machine: StockTools BOOTSTRAP, its steps on standard
// input, a line each: class, standard input, arguments, parted by 0x1f; a line end inside them is 0x1e.
// For each step it writes: exit, standard output, standard error, parted by 0x1f and ended by 0x1c.
//
// In arguments, {bootstrap} stands for the server and {id:NAME} for a topic's id. A "class" that starts with @
// is done here: @partitions NAME COUNT waits until a topic has so many partitions, @gone NAME until it is gone.

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.utils.Exit;

public class StockTools {
    static class Exited extends RuntimeException { }

    static final PrintStream OUT = System.out;
    /** What a tool would do as its machine ends: the console producer sends what it still has. */
    static final List<Runnable> hooks = new ArrayList<>();
    /** What the tool exited with, first: some catch what ends them here and exit again. */
    static Integer status;
    static Admin admin;
    static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        Exit.setExitProcedure((code, message) -> exit(code));
        Exit.setHaltProcedure((code, message) -> exit(code));
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        BufferedReader steps = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = steps.readLine(); line != null; line = steps.readLine()) {
            String[] step = line.replace('\u001e', '\n').split("\u001f", -1);
            OUT.print(run(step[0], step[1], Arrays.copyOfRange(step, 2, step.length)) + "\u001c");
            OUT.flush();
        }
        // A tool may leave threads behind.
        Runtime.getRuntime().halt(0);
    }

    static void exit(int code) {
        if (status == null) {
            status = code;
            System.setOut(new PrintStream(OutputStream.nullOutputStream()));
            System.setErr(new PrintStream(OutputStream.nullOutputStream()));
        }
        throw new Exited();
    }

    static String run(String tool, String input, String[] arguments) throws Exception {
        for (int at = 0; at < arguments.length; at++) arguments[at] = filledIn(arguments[at]);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        System.setIn(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        status = null;
        try {
            if (tool.startsWith("@")) {
                await(tool, arguments);
            } else {
                Class<?> main = Class.forName(tool);
                forget(main);
                main.getMethod("main", String[].class).invoke(null, (Object) arguments);
            }
        } catch (InvocationTargetException thrown) {
            if (status == null) {
                thrown.getCause().printStackTrace();
                status = 1;
            }
        }
        hooks.forEach(Runnable::run);
        hooks.clear();
        System.out.flush();
        return (status == null ? 0 : status) + "\u001f" + out.toString(StandardCharsets.UTF_8)
            + "\u001f" + err.toString(StandardCharsets.UTF_8);
    }

    /** The console consumer counts its messages in a static field: each step begins anew. */
    static void forget(Class<?> main) throws Exception {
        for (Field field : main.getDeclaredFields()) {
            if (field.getName().equals("messageCount")) {
                field.setAccessible(true);
                field.setInt(null, 0);
            }
        }
    }

    static String filledIn(String argument) throws Exception {
        Matcher id = Pattern.compile("\\{id:(.*)\\}").matcher(argument.replace("{bootstrap}", bootstrap));
        return id.replaceAll(found -> described(found.group(1)).topicId().toString());
    }

    static TopicDescription described(String topic) {
        try {
            return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        } catch (Exception error) {
            return null;
        }
    }

    static void await(String what, String[] arguments) throws Exception {
        for (int tries = 0; tries < 1000; tries++) {
            TopicDescription topic = described(arguments[0]);
            boolean done = what.equals("@gone")
                ? topic == null
                : topic != null && topic.partitions().size() == Integer.parseInt(arguments[1])
                    && topic.partitions().stream().allMatch(partition -> partition.leader() != null);
            if (done) return;
            Thread.sleep(10);
        }
        throw new IllegalStateException(what + " " + String.join(" ", arguments));
    }
}
