package deponent.eth;

import static org.junit.jupiter.api.Assertions.assertEquals;

import deponent.sets.Sets;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.bouncycastle.crypto.digests.KeccakDigest;
import org.junit.jupiter.api.Test;

class Keccak256Test {
  private static Hash ofBouncyCastle(byte[] input) {
    KeccakDigest digest = new KeccakDigest(256);
    digest.update(input, 0, input.length);
    byte[] hash = new byte[32];
    digest.doFinal(hash, 0);
    return Hash.of(hash);
  }

  @Test
  void itIsBouncyCastlesAtEachLength() {
    Random random = Sets.random();
    for (int length = 0; length < 700; length++) {
      byte[] input = new byte[length];
      random.nextBytes(input);
      Hash expected = ofBouncyCastle(input);
      assertEquals(expected, Keccak256.hash(input));
      assertEquals(expected, Keccak256.hash(Bytes.of(input)));
      Keccak256 parts = new Keccak256();
      for (int round = 0; round < 2; round++) {
        int at = 0;
        while (at < length) {
          int part = Math.min(length - at, random.nextInt(300));
          parts.update(input, at, part);
          at += part;
        }
        assertEquals(expected, parts.digest());
      }
    }
  }

  @Test
  void itIsThatOfTheSet() {
    List<Map<String, Object>> set = Sets.ethers("hashes");
    Sets.counted(set, 516);
    for (Map<String, Object> test : set) {
      byte[] input = Hex.decode((String) test.get("data"));
      assertEquals(test.get("keccak256"), Keccak256.hash(input).toString());
    }
  }
}
