package deponent.engine;

import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.Keccak256;
import deponent.eth.MalformedException;
import deponent.eth.RlpReader;

/** What the leaf of an account refers to. */
record TrieAccount(Hash storageRoot, Hash codeHash) {
  /** The root of a trie without keys: the hash of an empty string in RLP. */
  static final Hash EMPTY_ROOT = Keccak256.hash(new byte[] {(byte) 0x80});

  /** The hash of no code. */
  static final Hash NO_CODE = Keccak256.hash(new byte[0]);

  static TrieAccount read(Bytes value) {
    RlpReader account = new RlpReader(value).list();
    account.unsignedNumber();
    account.integer();
    TrieAccount read = new TrieAccount(account.hash(), account.hash());
    account.end().finish();
    return read;
  }

  /** Checks the value of a slot: a number of at most 256 bits, and not zero. */
  static void checkSlot(Bytes value) {
    RlpReader slot = new RlpReader(value);
    if (slot.integer().signum() == 0) {
      throw new MalformedException("a slot with the value zero");
    }
    slot.finish();
  }
}
