package deponent.wallet;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Address;
import deponent.eth.BlobSidecar;
import deponent.eth.Bytes;
import deponent.eth.MalformedException;
import deponent.eth.SignedTransaction;
import deponent.eth.Transaction;
import deponent.eth.Wei;
import deponent.sets.Sets;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class BlobsTest {
  private static final byte[] DATA = "Hello, blobs! ".repeat(300).getBytes(StandardCharsets.UTF_8);

  private static String sha256(byte[] bytes) throws Exception {
    return Bytes.of(MessageDigest.getInstance("SHA-256").digest(bytes)).toString();
  }

  @Test
  void proofsAreThoseOfTheLibraryInPython() throws Exception {
    // By ckzg 2.1.8 for Python, with the setup's text; the blob is that of Foundry's coder.
    BlobSidecar sidecar = Blobs.sidecar(DATA);
    assertEquals(1, sidecar.blobs().size());
    assertEquals(
        "0x0e9cd96a116637a1237886450839c9ad3561b8dd991477a296503c3f4e1f75c3",
        sha256(sidecar.blobs().get(0).toBytes()));
    assertEquals(
        "0xb58c93f42041d2f557124b46da2fda6cebc3675c8f0b4f2da013a1ff0ee20030"
            + "b959bdc1593e4bf0976a90e4025a9060",
        sidecar.commitments().get(0).toString());
    assertEquals(
        "0x0194536cd1a65b4c48baf98a426f6809fb8e6288d78aa6aede5d34af4e1f635b",
        sidecar.versionedHashes().get(0).toString());
    byte[] proofs = Bytes.concat(sidecar.cellProofs().toArray(Bytes[]::new)).toBytes();
    assertEquals(
        "0x6ed21d86115dce4c5e59c4c03e5cd8a0cc6c0c873cfe74c7fe04ae38dcdd030e", sha256(proofs));
    assertTrue(Blobs.verify(sidecar));
  }

  @Test
  void changedProofsAreNotVerified() {
    BlobSidecar one = Blobs.sidecar(DATA);
    List<Bytes> swapped = new ArrayList<>(one.cellProofs());
    swapped.set(3, one.cellProofs().get(4));
    assertFalse(Blobs.verify(new BlobSidecar(one.blobs(), one.commitments(), swapped)));
    swapped.set(3, Bytes.of(new byte[48]));
    assertFalse(Blobs.verify(new BlobSidecar(one.blobs(), one.commitments(), swapped)));
    byte[] blob = one.blobs().get(0).toBytes();
    blob[100] ^= 1;
    BlobSidecar changed =
        new BlobSidecar(List.of(Bytes.of(blob)), one.commitments(), one.cellProofs());
    assertFalse(Blobs.verify(changed));
  }

  @Test
  void aTransactionWithBlobsIsSignedAndEncoded() {
    PrivateKey key = PrivateKey.of("42".repeat(32));
    BlobSidecar sidecar = Blobs.sidecar(DATA);
    Transaction transaction =
        Transaction.to(Address.of("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"))
            .chainId(1)
            .gasLimit(21_000)
            .fees(Wei.gwei("2"), Wei.gwei("1"))
            .blobs(sidecar.versionedHashes(), Wei.gwei("1"))
            .build();
    SignedTransaction signed = key.sign(transaction);
    assertEquals(java.util.Optional.empty(), signed.fault());
    Bytes encoded = sidecar.encode(signed);
    assertEquals(signed, BlobSidecar.transactionOf(encoded));
    assertTrue(Blobs.verify(BlobSidecar.of(encoded)));
  }

  @Test
  void dataComesOutOfBlobsAsItWentIn() {
    Random random = Sets.random();
    int most = 4_095 * 31;
    for (int size : new int[] {1, 31, 32, most, most + 1, 2 * most, random.nextInt(2 * most) + 1}) {
      byte[] data = new byte[size];
      random.nextBytes(data);
      BlobSidecar sidecar = Blobs.sidecar(data);
      assertEquals(size <= most ? 1 : 2, sidecar.blobs().size(), "of " + size + " bytes");
      assertArrayEquals(data, Blobs.data(sidecar.blobs()), "of " + size + " bytes");
    }
    List<Bytes> empty = List.of(Bytes.of(new byte[BlobSidecar.BLOB_SIZE]));
    assertThrows(MalformedException.class, () -> Blobs.data(empty));
    assertThrows(MalformedException.class, () -> Blobs.data(List.of()));
    byte[] wrong = new byte[BlobSidecar.BLOB_SIZE];
    Arrays.fill(wrong, 5, 100, (byte) 1);
    assertThrows(MalformedException.class, () -> Blobs.data(List.of(Bytes.of(wrong))));
    wrong[2] = 1;
    assertThrows(MalformedException.class, () -> Blobs.data(List.of(Bytes.of(wrong))));
  }

  @Test
  void whatIsNoBlobIsRefused() {
    assertThrows(IllegalArgumentException.class, () -> Blobs.sidecar(new byte[0]));
    assertThrows(
        IllegalArgumentException.class, () -> Blobs.sidecar(List.of(Bytes.of(new byte[31]))));
    byte[] blob = new byte[BlobSidecar.BLOB_SIZE];
    blob[64] = 0x74;
    Throwable thrown =
        assertThrows(IllegalArgumentException.class, () -> Blobs.sidecar(List.of(Bytes.of(blob))));
    assertEquals("word 2 of blob 0 is not below the field's modulus", thrown.getMessage());
    assertTrue(Blobs.sidecar(List.of()).blobs().isEmpty());
  }

  /** Loads the wallet again, by its own loader. */
  private static final class Wallet extends URLClassLoader {
    Wallet() {
      super(new URL[0], BlobsTest.class.getClassLoader());
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      if (name.startsWith("ethereum.")) {
        throw new ClassNotFoundException(name);
      }
      if (!name.startsWith("deponent.wallet.")) {
        return super.loadClass(name, resolve);
      }
      Class<?> known = findLoadedClass(name);
      String file = "/" + name.replace('.', '/') + ".class";
      try (InputStream in = Blobs.class.getResourceAsStream(file)) {
        byte[] bytes = in.readAllBytes();
        return known == null ? defineClass(name, bytes, 0, bytes.length) : known;
      } catch (IOException unread) {
        throw new ClassNotFoundException(name, unread);
      }
    }
  }

  @Test
  void theMissingJarIsNamed() throws Exception {
    try (Wallet loader = new Wallet()) {
      Method sidecar = loader.loadClass(Blobs.class.getName()).getMethod("sidecar", byte[].class);
      for (int i = 0; i < 2; i++) {
        Throwable thrown =
            assertThrows(InvocationTargetException.class, () -> sidecar.invoke(null, DATA))
                .getCause();
        assertTrue(
            thrown.getMessage().contains("io.consensys.protocols:jc-kzg-4844 (2.1.8)"),
            thrown.toString());
        assertEquals(IllegalStateException.class, thrown.getClass());
      }
    }
  }
}
