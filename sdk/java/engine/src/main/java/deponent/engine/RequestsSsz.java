package deponent.engine;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * {@code NewPayloadRequest} of EIP-8025. It has a list for each type of requests where EIP-7685 has
 * a byte string of the type and its items; the items' bytes are the same.
 */
final class RequestsSsz {
  private static final Ssz.Field PAYLOAD = new Ssz.Field("execution_payload", 0);
  private static final Ssz.Field HASHES = new Ssz.Field("versioned_hashes", 4);
  private static final String NAME = "new_payload_request";
  private static final Ssz.Layout PARIS = Ssz.Layout.of(NAME, 4, PAYLOAD);
  private static final Ssz.Layout CANCUN = Ssz.Layout.of(NAME, 40, PAYLOAD, HASHES);
  private static final Ssz.Layout PRAGUE =
      Ssz.Layout.of(NAME, 44, PAYLOAD, HASHES, new Ssz.Field("execution_requests", 40));

  /** Each type of requests: its list's name, and the bytes of an item. */
  private record Type(String name, int itemBytes) {}

  /** By their numbers: EIP-6110, EIP-7002, EIP-7251, and from Amsterdam on those of EIP-8282. */
  private static final List<Type> TYPES =
      List.of(
          new Type("deposits", 192),
          new Type("withdrawals", 76),
          new Type("consolidations", 116),
          new Type("builder_deposits", 184),
          new Type("builder_exits", 68));

  private static final int TYPES_BEFORE_AMSTERDAM = 3;

  private RequestsSsz() {}

  private static Ssz.Layout layout(Fork fork) {
    return fork.hasRequests() ? PRAGUE : fork.payloadVersion() >= 3 ? CANCUN : PARIS;
  }

  private static int types(Fork fork) {
    return fork.payloadVersion() >= 4 ? TYPES.size() : TYPES_BEFORE_AMSTERDAM;
  }

  static NewPayload read(Fork fork, Memory input) {
    Ssz ssz = new Ssz(layout(fork), input);
    ExecutionPayload payload =
        PayloadSsz.read(fork.payloadVersion(), ssz.part(0), PayloadSsz.PROGRESSIVE);
    ssz.offset();
    if (fork.payloadVersion() < 3) {
      return NewPayload.of(payload);
    }
    List<Hash> hashes = hashes(ssz.part(1));
    ssz.offset();
    Optional<Hash> root = Optional.of(ssz.hash());
    Optional<List<Bytes>> requests = Optional.empty();
    if (fork.hasRequests()) {
      requests = Optional.of(requests(fork, ssz.part(2)));
    }
    return new NewPayload(payload, hashes, root, requests);
  }

  private static List<Hash> hashes(Memory list) {
    int count = Ssz.count("versioned_hashes", list, Hash.SIZE, NewPayload.HASHES);
    List<Hash> hashes = new ArrayList<>(count);
    byte[] one = new byte[Hash.SIZE];
    for (int index = 0; index < count; index++) {
      list.copyTo((long) index * Hash.SIZE, one, Hash.SIZE);
      hashes.add(Hash.of(one));
    }
    return hashes;
  }

  private static List<Bytes> requests(Fork fork, Memory input) {
    int types = types(fork);
    Ssz.Field[] fields = new Ssz.Field[types];
    for (int type = 0; type < types; type++) {
      fields[type] = new Ssz.Field(TYPES.get(type).name, Ssz.OFFSET_BYTES * type);
    }
    Ssz ssz = new Ssz(Ssz.Layout.of("execution_requests", Ssz.OFFSET_BYTES * types, fields), input);
    List<Bytes> requests = new ArrayList<>();
    for (int type = 0; type < types; type++) {
      Memory list = ssz.part(type);
      Type known = TYPES.get(type);
      if (Ssz.count(known.name, list, known.itemBytes, Integer.MAX_VALUE) > 0) {
        requests.add(Bytes.concat(Bytes.of(new byte[] {(byte) type}), Ssz.copied(list)));
      }
    }
    return requests;
  }

  /** Checks that each is of a type of the fork, after the one before, with whole items. */
  static void check(Fork fork, List<Bytes> requests) {
    int before = -1;
    for (Bytes request : requests) {
      if (request.size() < 2) {
        throw new IllegalArgumentException("a request without content");
      }
      int type = request.at(0);
      if (type <= before || type >= types(fork)) {
        throw new IllegalArgumentException(
            "request type " + (type & 0xff) + " is unknown in " + fork + " or out of order");
      }
      Type known = TYPES.get(type);
      if ((request.size() - 1) % known.itemBytes != 0) {
        throw new IllegalArgumentException(
            known.name + ": no multiple of " + known.itemBytes + " bytes");
      }
      before = type;
    }
  }

  static long bytes(Fork fork, NewPayload request) {
    long bytes =
        layout(fork).fixedBytes()
            + PayloadSsz.bytes(request.payload())
            + (long) Hash.SIZE * request.versionedHashes().size();
    if (fork.hasRequests()) {
      bytes += (long) Ssz.OFFSET_BYTES * types(fork);
      for (Bytes one : request.executionRequests().orElse(List.of())) {
        bytes += one.size() - 1;
      }
    }
    return bytes;
  }

  /** Adds the encoding to what {@code out}, which is little-endian, has; it fits. */
  static void write(Fork fork, NewPayload request, ByteBuffer out) {
    int hashes = layout(fork).fixedBytes() + (int) PayloadSsz.bytes(request.payload());
    out.putInt(layout(fork).fixedBytes());
    request.parentBeaconBlockRoot().ifPresent(root -> out.putInt(hashes).put(root.toBytes()));
    if (fork.hasRequests()) {
      out.putInt(hashes + Hash.SIZE * request.versionedHashes().size());
    }
    PayloadSsz.write(request.payload(), out);
    request.versionedHashes().forEach(hash -> out.put(hash.toBytes()));
    if (fork.hasRequests()) {
      writeRequests(types(fork), request.executionRequests().orElse(List.of()), out);
    }
  }

  private static void writeRequests(int types, List<Bytes> requests, ByteBuffer out) {
    int offset = Ssz.OFFSET_BYTES * types;
    int next = 0;
    for (int type = 0; type < types; type++) {
      out.putInt(offset);
      if (next < requests.size() && requests.get(next).at(0) == type) {
        offset += requests.get(next).size() - 1;
        next++;
      }
    }
    for (Bytes one : requests) {
      out.put(one.asBuffer().position(1));
    }
  }
}
