import com.google.re2j.*;
import java.util.*;

/**
 * Writes patterns.txt: what RE2/J, which Apache Kafka 4.1.2 uses for regex subscriptions, says of patterns:
 * the pattern (control characters, backslashes and what is not ASCII as a backslash and four hex digits), the
 * verdict, and which of the names in the first line it matches, by their place.
 *
 * java -cp "$HOME/.cache/barnabas/test-tools/kafka/*" Patterns.java > patterns.txt
 */
public class Patterns {
    static final String[] NAMES = {"a", "A", "ab", "b", "aa", "aab", "orders", "orders-1", "orders-12", "Orders", "x_y", "x.y",
        "__consumer_offsets", "1", "12", "-", ".", "_", "topic.v1-2_3", "k", "s", "K", "aaaa", "b{", "ba"};
    static final String[] GIVEN = {
        "", "a", "ab", ".*", ".+", "orders.*", "^orders.*$", "orders-[0-9]+", "orders-\\d{1,2}", "(?i)orders", "(?i:O)rders", "(?-i)orders",
        "a|b", "a||b", "|a", "a|", "()", "(a)(b)?", "(?:a|b)+", "(?P<n>a)b", "(?<n>a)b", "(?P<n>a)(?P<n>b)", "(?P<>a)", "(?P<n a>a)", "(?P<1>a)", "(?P<n", "(?P=n)",
        "(?=a)", "(?!a)a", "(?<=a)b", "(?<!a)b", "(?>a)", "(a)\\1", "\\1", "\\8", "(?#c)a", "(?x)a", "(?i", "(?", "(", ")", "a)", "(a", "a(b", "(?i)", "(?)", "(?-)", "(?i-)", "(?--i)", "(?ii)a", "(?imsU)a", "(?u)a", "(?i-s:a)", "(?P", "(?:", "(?:a",
        "*", "+", "?", "a**", "a*+", "a*?", "a+?", "a??", "a*??", "a++", "a{2}", "a{2,}", "a{1,2}", "a{,2}", "a{2}{3}", "a{2}*", "a{2}?", "a{1001}", "a{1000}", "a{2,1}", "a{", "a{1", "a{1,", "a{}", "a{a}", "a{01}", "{", "{1}", "}", "b{", "x{1}{", "^*", "$*", "\\b*", "(?i)*", "a(?i)*", "|*", "(*)", "(|*)", "a|*", "a{99999999999}", "a{0}", "a{0,0}b", "a{4}",
        "[a]", "[^a]", "[ab]+", "[a-z]+", "[z-a]", "[]a]", "[^]a]", "[]", "[^]", "[", "[a", "[a-", "[a-]", "[-a]", "[--a]", "[a-b-c]", "[a-\\d]", "[\\d-z]", "[[:alpha:]]+", "[[:^alpha:]]", "[[:word:]]+", "[[:foo:]]", "[:alpha:]", "[[:alpha:]", "[[a]]", "[[]", "[a&&b]", "[a--b]", "[a~~b]", "[\\w.-]+", "[^\\w]", "[\\D]", "[\\pL]+", "[\\p{Latin}]+", "[^\\p{Latin}]", "[\\P{Latin}]", "[\\b]", "[\\Qa\\E]", "[\\x41]", "[\\101]", "[\\n]", "[a\\]b]+", "[\\^a]", "[^^]", "[$]", "[.]", "[*]", "[a-zA-Z0-9._-]+", "(?i)[A-B]+", "(?i)[^a]", "(?i)\\x{212a}", "(?i)[\\x{212a}]", "(?i)\u017f", "(?i)[\u017f]", "\u212a", "\u00fc", "[\u00fc]", "[^\u00fc]", "[a-\u00fc]+", "(?i)\\p{Lu}+", "(?i)[[:upper:]]+",
        "\\a", "\\f", "\\t", "\\n", "\\r", "\\v", "\\A a", "\\Aa\\z", "a\\Z", "\\ba\\b", "\\Ba", "\\B", "\\C", "\\G", "\\X", "\\R", "\\K", "\\d+", "\\D", "\\w+", "\\W", "\\s", "\\S+", "\\h", "\\e", "\\cA", "\\x", "\\x4", "\\x41", "\\x{41}", "\\x{}", "\\x{110000}", "\\x{10ffff}", "\\x{4", "\\x{0041}", "\\0", "\\01", "\\012", "\\0123", "\\141", "\\12", "\\17", "\\777", "\\", "a\\", "\\.", "\\-", "\\_", "\\<a", "a\\>", "\\{", "\\ ", "\\/", "\\%", "\\Qa.b\\E", "\\Qa", "\\Q", "\\E", "a\\E", "\\Q\\E*", "\\Qab\\E*", "\\Qa\\\\E", "\\u0041", "\\U0041", "\\N", "\\y", "\\\u00fc",
        "\\pL", "\\pL+", "\\p{L}+", "\\p{Lu}+", "\\P{Lu}+", "\\p{^Lu}+", "\\P{^Lu}+", "\\pN+", "\\p{Nd}+", "\\pP", "\\p{Pc}", "\\p{Pd}", "\\p{Po}", "\\pS", "\\p{Greek}", "\\p{Common}+", "\\p{Any}+", "\\p{Foo}", "\\p", "\\p{", "\\p{L", "\\pX", "\\p{}", "\\p{latin}", "\\p{Latin}+", "\\p{Letter}", "\\p{IsLatin}", "\\p{Alpha}", "\\pZ", "\\pC", "\\pM", "\\p{^L}", "\\p^L", "\\P{^L}+",
        "a^b", "a$b", "^a", "a$", "^$", "(?m)^a$", "(?m:^)a", "a\\z", ".", "..", "(?s).", "((a))", "((((((((((a))))))))))", "(a|b)*c|(a|ab)*c", "(?:(?:a{3}){3}){3}", "(?U)a+", "(?U)a+?", "(?U:a*)b", "a.b", "x.y", "x\\.y", "__.*", "topic.v\\d-\\d_\\d", "!", "#", "a b", "a#b", "~", "&&", "\t", "\"", "'"
    };
    static final String[] TOKENS = {"a", "b", "A", "*", "+", "?", "(", ")", "(?:", "(?i)", "(?i:", "[", "]", "[^", "-", "{2}", "{1,2}", "{", "}", ",", "|", "^", "$", ".", "\\d", "\\w", "\\b", "\\", "\\pL", "\\p{Lu}", "[:alpha:]", "1", "_", "\\Q", "\\E", "(?", "(?P<n>", "\\x41", "&&", "\\A", "\\z"};

    public static void main(String[] args) {
        System.out.println(String.join(" ", NAMES));
        for (String pattern : GIVEN) show(pattern);
        Random random = new Random(2);
        for (int i = 0; i < 900; i++) {
            StringBuilder pattern = new StringBuilder();
            for (int n = 1 + random.nextInt(7); n > 0; n--) pattern.append(TOKENS[random.nextInt(TOKENS.length)]);
            show(pattern.toString());
        }
    }

    static void show(String pattern) {
        String verdict;
        StringBuilder matched = new StringBuilder();
        try {
            Pattern compiled = Pattern.compile(pattern);
            verdict = "ok";
            for (int i = 0; i < NAMES.length; i++)
                if (compiled.matcher(NAMES[i]).matches()) matched.append(matched.length() == 0 ? "" : ",").append(i);
        } catch (PatternSyntaxException e) {
            verdict = e.getDescription();
        } catch (RuntimeException e) {
            verdict = "exception " + e.getClass().getSimpleName();
        }
        StringBuilder escaped = new StringBuilder();
        for (char c : pattern.toCharArray()) escaped.append(c >= 32 && c < 127 && c != '\\' ? "" + c : String.format("\\%04x", (int) c));
        System.out.println(escaped + "\t" + verdict + "\t" + matched);
    }
}
