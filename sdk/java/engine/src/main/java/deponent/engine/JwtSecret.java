package deponent.engine;

import deponent.eth.Bytes;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.time.Instant;
import java.util.Base64;
import java.util.function.Supplier;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/**
 * The secret that a port of the Engine API shares with its clients, and tokens made with it: HS256
 * over the claim {@code iat} (execution-apis {@code src/engine/authentication.md}).
 */
final class JwtSecret implements Supplier<String> {
  private static final int BYTES = 32;

  /** Bytes of a file that is read, a secret with white space around it. */
  private static final int FILE_BYTES = 4_096;

  private static final String HEAD = base64("{\"alg\":\"HS256\",\"typ\":\"JWT\"}");

  private final SecretKeySpec key;

  private JwtSecret(byte[] secret) {
    key = new SecretKeySpec(secret, "HmacSHA256");
  }

  static JwtSecret of(byte[] secret) {
    if (secret.length != BYTES) {
      throw new IllegalArgumentException("a JWT secret has 32 bytes, not " + secret.length);
    }
    return new JwtSecret(secret);
  }

  /** Reads 64 hex digits, with or without 0x, white space around them allowed. */
  static JwtSecret read(Path file) {
    String text;
    try {
      if (Files.exists(file) && !Files.isRegularFile(file)) {
        throw unreadable(file, "it is no regular file", null);
      }
      if (Files.size(file) > FILE_BYTES) {
        throw useless(file, "got " + Files.size(file) + " bytes");
      }
      text = new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1).strip();
    } catch (NoSuchFileException none) {
      throw unreadable(file, "there is no such file", none);
    } catch (AccessDeniedException denied) {
      throw unreadable(file, "access is denied", denied);
    } catch (IOException failure) {
      throw unreadable(file, failure.getMessage(), failure);
    }
    String digits = text.startsWith("0x") ? text.substring(2) : text;
    if (digits.length() != 2 * BYTES) {
      throw useless(file, "got " + digits.length() + " characters");
    }
    if (!digits.matches("[0-9a-fA-F]*")) {
      throw useless(file, "not all of them are hex digits");
    }
    return new JwtSecret(Bytes.of("0x" + digits).toBytes());
  }

  private static IllegalArgumentException unreadable(
      Path file, String why, @Nullable Exception cause) {
    return new IllegalArgumentException(
        "cannot read the JWT secret file " + file + ": " + why, cause);
  }

  private static IllegalArgumentException useless(Path file, String got) {
    return new IllegalArgumentException(
        "the JWT secret file "
            + file
            + " is of no use: a secret is 64 hex digits, with or without 0x, alone: "
            + got);
  }

  /** A token of this second. */
  @Override
  public String get() {
    return token(Instant.now());
  }

  String token(Instant issued) {
    String claims = HEAD + "." + base64("{\"iat\":" + issued.getEpochSecond() + "}");
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(key);
      byte[] sum = mac.doFinal(claims.getBytes(StandardCharsets.US_ASCII));
      return claims + "." + Base64.getUrlEncoder().withoutPadding().encodeToString(sum);
    } catch (GeneralSecurityException impossible) {
      throw new IllegalStateException("every Java has HmacSHA256", impossible);
    }
  }

  private static String base64(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.US_ASCII);
    return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
  }
}
