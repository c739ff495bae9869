package deponent.bench;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** What rounds measured. */
final class Samples {
  private final List<Double> all = new ArrayList<>();

  void add(double sample) {
    all.add(sample);
  }

  boolean isEmpty() {
    return all.isEmpty();
  }

  double median() {
    return quantile(0.5);
  }

  /** Between samples it is interpolated. */
  double quantile(double part) {
    double[] sorted = all.stream().mapToDouble(Double::doubleValue).sorted().toArray();
    double place = part * (sorted.length - 1);
    int below = (int) place;
    int above = Math.min(below + 1, sorted.length - 1);
    return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
  }

  double max() {
    return quantile(1);
  }

  /** The ratios of this one to another, round by round. */
  Samples over(Samples other) {
    Samples ratios = new Samples();
    for (int i = 0; i < Math.min(all.size(), other.all.size()); i++) {
      ratios.add(all.get(i) / other.all.get(i));
    }
    return ratios;
  }

  /** The median, with the lowest and the highest ratio where there are several. */
  String ratio() {
    if (isEmpty()) {
      return "–";
    }
    String median = String.format(Locale.ROOT, "**%.1f**", median());
    return all.size() < 2
        ? median
        : median + String.format(Locale.ROOT, " (%.1f–%.1f)", quantile(0), max());
  }

  /** A number with three digits that count. */
  static String number(double number) {
    double rounded = number;
    if (number >= 1_000) {
      double unit = Math.pow(10, Math.floor(Math.log10(number)) - 2);
      rounded = Math.round(number / unit) * unit;
    }
    String form = number >= 100 ? "%,.0f" : number >= 10 ? "%.1f" : "%.2f";
    return String.format(Locale.ROOT, form, rounded);
  }

  /** A row of a table of Markdown. */
  static String row(String... cells) {
    return "| " + String.join(" | ", cells) + " |";
  }

  /** The line below a head of {@code cells}, the first of which is text. */
  static String line(int cells) {
    String[] marks = new String[cells];
    Arrays.fill(marks, "---:");
    marks[0] = ":---";
    return "|" + String.join("|", marks) + "|";
  }
}
