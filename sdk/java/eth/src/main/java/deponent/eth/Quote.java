package deponent.eth;

/** Texts of others in messages: of bounded length, and without control characters. */
final class Quote {
  private static final int LONGEST = 80;

  private Quote() {}

  static String of(CharSequence text) {
    StringBuilder quoted = new StringBuilder("'");
    int end = Math.min(text.length(), LONGEST);
    for (int i = 0; i < end; i++) {
      char one = text.charAt(i);
      quoted.append(Character.isISOControl(one) || Character.isSurrogate(one) ? '?' : one);
    }
    return quoted.append(end < text.length() ? "..'" : "'").toString();
  }
}
