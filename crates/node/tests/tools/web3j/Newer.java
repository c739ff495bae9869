import static java.math.BigInteger.ONE;
import static java.math.BigInteger.ZERO;

import java.math.BigInteger;
import java.util.List;
import org.web3j.crypto.AuthorizationTuple;
import org.web3j.crypto.Blob;
import org.web3j.crypto.Credentials;
import org.web3j.crypto.RawTransaction;
import org.web3j.protocol.core.DefaultBlockParameterName;

/**
 * The same day with web3j 6, which needs Java 21, and what it has beside: blobs with cell proofs
 * (EIP-7594), and accounts with code (EIP-7702). Java 22 finds the first file beside this one.
 *
 * <pre>java -cp 'JARS/*' Newer.java http://127.0.0.1:8545 ../Till.json</pre>
 */
public final class Newer {
  private static final Credentials SAVER =
      Credentials.create("0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6");
  private static final BigInteger FEE = Day.GWEI.multiply(Day.number(3));

  public static void main(String[] arguments) throws Exception {
    Day day = Day.run(arguments);
    blobs(day);
    delegations(day);
    System.out.println("{\"done\": [\"web3j\", \"newer\"]}");
    System.exit(0);
  }

  private static void blobs(Day day) throws Exception {
    List<Blob> blobs = List.of(new Blob(new byte[131_072]));
    BigInteger nonce = day.nonce(Day.PAYER);
    var receipt =
        day.signed(
            RawTransaction.createEip7594Transaction(
                blobs, Day.CHAIN, nonce, ONE, FEE, Day.GAS, Day.OTHER, ZERO, "", Day.GWEI));
    Day.is("0x3", receipt.getType());
    Day.is("0x1", receipt.getStatus());
  }

  /** An account has the code of the till, until it takes that back. */
  private static void delegations(Day day) throws Exception {
    String saver = SAVER.getAddress();
    become(day, day.till);
    Day.is("0xef0100" + day.till.substring(2), code(day, saver));
    String till = day.till;
    day.till = saver;
    day.pay("to a person", 5);
    Day.is(Day.number(5), day.paid());
    day.till = till;
    become(day, "0x" + "00".repeat(20));
    Day.is("0x", code(day, saver));
  }

  private static void become(Day day, String contract) throws Exception {
    var order = AuthorizationTuple.from(Day.CHAIN, contract, day.nonce(SAVER), SAVER);
    BigInteger nonce = day.nonce(Day.PAYER);
    var receipt =
        day.signed(
            RawTransaction.createTransaction(
                Day.CHAIN, nonce, ONE, FEE, Day.GAS, Day.OTHER, ZERO, "", List.of(),
                List.of(order)));
    Day.is("0x4", receipt.getType());
    Day.is("0x1", receipt.getStatus());
  }

  private static String code(Day day, String account) throws Exception {
    return day.web3.ethGetCode(account, DefaultBlockParameterName.LATEST).send().getCode();
  }
}
