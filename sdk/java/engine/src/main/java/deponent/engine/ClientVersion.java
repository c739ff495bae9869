package deponent.engine;

/**
 * The name and version of a server or a client: {@code ClientVersionV1}.
 *
 * @param code two letters
 * @param name for people
 * @param version such as {@code v1.0.0}
 * @param commit its first four bytes, in hex
 */
public record ClientVersion(String code, String name, String version, String commit) {}
