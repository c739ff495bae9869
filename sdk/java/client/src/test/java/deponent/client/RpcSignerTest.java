package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.AccessListEntry;
import deponent.eth.Address;
import deponent.eth.Authorization;
import deponent.eth.BlobSidecar;
import deponent.eth.Bytes;
import deponent.eth.Hash;
import deponent.eth.JsonReader;
import deponent.eth.ProtocolException;
import deponent.eth.RevertException;
import deponent.eth.Signature;
import deponent.eth.Transaction;
import deponent.eth.TransactionBuilder;
import deponent.eth.TypedData;
import deponent.eth.Wei;
import deponent.wallet.PrivateKey;
import java.math.BigInteger;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Servers that sign. */
class RpcSignerTest {
  private static final Address FRIEND = Address.of("0x00000000000000000000000000000000000f00d5");

  private static final PrivateKey KEY = Nodes.key(0);

  private static TransactionBuilder payment() {
    return Transaction.to(FRIEND).chainId(31_337).nonce(3).value(Wei.of(7)).gasLimit(50_000);
  }

  private static List<Transaction> transactions() {
    List<AccessListEntry> list = List.of(new AccessListEntry(FRIEND, List.of(Hash.ZERO)));
    return List.of(
        payment().gasPrice(Wei.gwei("2")).build(),
        payment().gasPrice(Wei.gwei("2")).accessList(list).build(),
        payment().fees(Wei.gwei("2"), Wei.gwei("1")).data(Bytes.of("0x1234")).build(),
        payment().fees(Wei.gwei("2"), Wei.gwei("1")).accessList(list).build(),
        Transaction.create(Bytes.of("0x6000"))
            .chainId(31_337)
            .gasLimit(90_000)
            .fees(Wei.gwei("2"), Wei.gwei("1"))
            .build());
  }

  private static TypedData mail() {
    return TypedData.of(
        TypedData.domain("App", "1", 31_337, FRIEND),
        "Mail",
        TypedData.types("Mail(address to,uint256 big,string text)"),
        Map.of("to", FRIEND, "big", BigInteger.TWO.pow(200), "text", "\"Hello\" \u00e9"));
  }

  @Test
  void nodesSignAsTheKeyItselfDoes() throws Exception {
    Nodes.each(
        List.of(),
        node -> {
          try (Client eth = node.client("http")) {
            RpcSigner signer = RpcSigner.of(eth.provider(), KEY.address());
            for (Transaction one : transactions()) {
              assertEquals(KEY.sign(one), signer.sign(one));
            }
            assertEquals(KEY.signMessage("Hello"), signer.signMessage("Hello"));
            assertEquals(KEY.sign(mail()), signer.sign(mail()));
            Account me = eth.account(signer);
            assertTrue(me.send(Call.to(FRIEND).value(Wei.of(1))).await().succeeded());
          }
        });
  }

  @Test
  void noMethodSignsAuthorizations() {
    RpcSigner signer = RpcSigner.of(Scripted.client((m, p) -> "null").provider(), FRIEND);
    Authorization authorization = Authorization.of(1, FRIEND, 0);
    assertThrows(UnsupportedOperationException.class, () -> signer.sign(authorization));
  }

  private static String text(Address address) {
    return "\"" + address.toString().toLowerCase() + "\"";
  }

  @Test
  void web3SignerIsAskedInItsWords() {
    Transaction one = transactions().get(2);
    Client web3signer =
        Scripted.client(
            (method, params) -> {
              String from = text(KEY.address());
              return switch (method) {
                case "eth_signTransaction" -> {
                  assertEquals(
                      "[{\"from\":"
                          + from
                          + ",\"to\":"
                          + text(FRIEND)
                          + ",\"gas\":\"0xc350\",\"value\":\"0x7\",\"nonce\":\"0x3\","
                          + "\"data\":\"0x1234\",\"chainId\":\"0x7a69\","
                          + "\"maxFeePerGas\":\"0x77359400\","
                          + "\"maxPriorityFeePerGas\":\"0x3b9aca00\"}]",
                      params);
                  yield "\"" + KEY.sign(one).encode() + "\"";
                }
                case "eth_sign" -> {
                  assertEquals("[" + from + ",\"0x4869\"]", params);
                  yield "\"" + KEY.signMessage("Hi") + "\"";
                }
                case "eth_signTypedData" -> {
                  JsonReader json = new JsonReader(params);
                  json.beginArray();
                  assertEquals(KEY.address(), json.nextAddress());
                  yield "\"" + KEY.sign(TypedData.ofJson(json.nextString())) + "\"";
                }
                default -> throw new AssertionError(method);
              };
            });
    RpcSigner signer = RpcSigner.of(web3signer.provider(), KEY.address());
    assertEquals(KEY.sign(one), signer.sign(one));
    assertEquals(KEY.signMessage("Hi"), signer.signMessage("Hi"));
    assertEquals(KEY.sign(mail()), signer.sign(mail()));
    assertFalse(signer.toString().contains("http"));
  }

  @Test
  void anotherTransactionIsALie() {
    List<Transaction> all = transactions();
    Bytes other = KEY.sign(all.get(0)).encode();
    for (String answer :
        List.of(
            "\"" + other + "\"",
            "{\"raw\":\"" + other + "\",\"tx\":{}}",
            "{}",
            "\"0x\"",
            "\"0x1234\"")) {
      RpcSigner signer = RpcSigner.of(Scripted.client((m, p) -> answer).provider(), KEY.address());
      assertThrows(RuntimeException.class, () -> signer.sign(all.get(1)), answer);
    }
    RpcSigner liar =
        RpcSigner.of(Scripted.client((m, p) -> "\"" + other + "\"").provider(), KEY.address());
    assertThrows(ProtocolException.class, () -> liar.sign(all.get(1)));
    RpcSigner geth =
        RpcSigner.of(
            Scripted.client((m, p) -> "{\"tx\":{},\"raw\":\"" + other + "\"}").provider(),
            KEY.address());
    assertEquals(KEY.sign(all.get(0)), geth.sign(all.get(0)));
    RpcSigner shorter = RpcSigner.of(Scripted.client((m, p) -> "\"0x12\"").provider(), FRIEND);
    assertThrows(RuntimeException.class, () -> shorter.signMessage("Hi"));
  }

  @Test
  void anAccountOfTheNodeSendsWithoutAKey() throws Exception {
    Nodes.each(
        List.of(),
        node -> {
          for (String scheme : List.of("ws", "http")) {
            try (Client eth = node.client(scheme)) {
              Account me = eth.account(KEY.address());
              Receipt paid = me.send(Call.to(FRIEND).value(Wei.of(7))).await();
              assertEquals(KEY.address(), paid.from());
              Address till = me.deploy(Till.with(100)).await().contractAddress().orElseThrow();
              Call pay = Call.to(till).data(Till.ABI.function("pay"), "no").errors(Till.ABI);
              RevertException before = assertThrows(RevertException.class, () -> me.send(pay));
              assertEquals("TooLittle(0, 100)", before.reason());
              PendingTransaction failed = me.send(pay.gasLimit(200_000));
              RevertException after = assertThrows(RevertException.class, failed::await);
              assertEquals("TooLittle(0, 100)", after.reason());
              Fees fees = Fees.fixed(Wei.gwei("9"), Wei.gwei("2"));
              PendingTransaction dear = me.fees(fees).send(Call.to(FRIEND));
              dear.await();
              Wei most = eth.transaction(dear.hash()).orElseThrow().maxFeePerGas().orElseThrow();
              assertEquals(Wei.gwei("9"), most);
              assertEquals(KEY.signMessage("Hi"), me.signMessage("Hi"));
              Signature own = me.prepare(Call.to(FRIEND)).signature();
              assertTrue(own.isCanonical());
              BlobSidecar none = new BlobSidecar(List.of(), List.of(), List.of());
              assertThrows(
                  UnsupportedOperationException.class, () -> me.sendBlobs(Call.to(FRIEND), none));

              Nodes.ask(eth, "anvil_impersonateAccount", json -> json.value(FRIEND));
              Nodes.ask(
                  eth, "anvil_setBalance", json -> json.value(FRIEND).quantity(Wei.ether("1")));
              Receipt theirs =
                  eth.account(FRIEND)
                      .send(Call.to(till).data(Till.ABI.function("pay"), "yes").value(Wei.of(100)))
                      .await();
              assertEquals(FRIEND, theirs.from());
            }
          }
        });
  }
}
