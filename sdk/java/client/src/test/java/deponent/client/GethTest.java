package deponent.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.eth.Address;
import deponent.eth.Bytes;
import deponent.eth.JsonReader;
import deponent.eth.RevertException;
import deponent.eth.RpcException;
import deponent.eth.Wei;
import deponent.rpc.Params;
import deponent.sets.Node;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** Accounts with geth's chain for development, over its Unix socket, where geth is there. */
class GethTest {
  @Test
  void anAccountSendsAndLearnsWhatBecameOfIt() throws Exception {
    try (Node geth = Node.gethDev()) {
      if (geth == null) {
        return;
      }
      try (Client eth = Client.connect(geth.socket)) {
        JsonReader accounts = new JsonReader(Nodes.ask(eth, "eth_accounts", Params.NONE));
        accounts.beginArray();
        Account rich = eth.account(accounts.nextAddress());
        Account me = eth.account(Nodes.key(0));
        rich.send(Call.to(me.address()).value(Wei.ether("100"))).await(1, Nodes.LONG);
        Reverting contracts = new Reverting(me);
        for (Reverting.Case one : contracts.cases()) {
          RevertException before = assertThrows(RevertException.class, () -> me.send(one.call()));
          assertEquals(one.reason(), before.reason());
          assertEquals(one.data(), before.revertData());
          PendingTransaction failed = me.send(one.call().gasLimit(200_000));
          RevertException after =
              assertThrows(RevertException.class, () -> failed.await(1, Nodes.LONG));
          assertEquals(one.reason(), after.reason());
          assertEquals(one.data(), after.revertData());
        }
        Call cheap = Call.to(Address.ZERO).gasLimit(20_999);
        RpcException refused = assertThrows(RpcException.class, () -> me.send(cheap));
        assertEquals(RpcException.class, refused.getClass());
        manySends(eth, me);
        Bytes stop = Bytes.of("0x00");
        Address code = me.deploy(Till.deployed(stop)).await().contractAddress().orElseThrow();
        assertTrue(me.delegate(code).await(1, Nodes.LONG).succeeded());
        Bytes delegation = Bytes.concat(Bytes.of("0xef0100"), Bytes.of(code.toBytes()));
        assertEquals(delegation, eth.code(me.address()));
        me.delegate(Address.ZERO).await(1, Nodes.LONG);
        assertEquals(Bytes.EMPTY, eth.code(me.address()));
      }
    }
  }

  private static void manySends(Client eth, Account me) {
    long before = eth.transactionCount(me.address());
    List<CompletableFuture<Receipt>> receipts = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      Call payment = Call.to(Address.ZERO).value(Wei.of(i));
      receipts.add(Account.async(() -> me.send(payment).await(1, Nodes.LONG)));
    }
    long gas = 0;
    for (CompletableFuture<Receipt> receipt : receipts) {
      gas += receipt.join().gasUsed();
    }
    assertEquals(200 * 21_000, gas);
    assertEquals(before + 200, eth.transactionCount(me.address()));
  }
}
