package deponent.client;

import deponent.eth.JsonWriter;
import java.util.ArrayList;
import java.util.List;

/**
 * Calls in blocks that follow each other, to be run on top of a block ({@code eth_simulateV1}).
 * What overrides and calls change stays for the calls behind them. Each method gives a new one.
 *
 * <pre>{@code
 * Simulation plan = Simulation.of(approve, swap).then(Overrides.NONE.time(tomorrow), redeem);
 * List<SimulatedBlock> blocks = eth.simulate(plan.withValidation());
 * }</pre>
 */
public final class Simulation {
  private record Part(Overrides overrides, List<Call> calls) {}

  private final List<Part> parts;
  private final boolean validation;
  private final boolean transfers;
  private final boolean transactions;

  private Simulation(
      List<Part> parts, boolean validation, boolean transfers, boolean transactions) {
    this.parts = parts;
    this.validation = validation;
    this.transfers = transfers;
    this.transactions = transactions;
  }

  /** A block with these calls. */
  public static Simulation of(Call... calls) {
    return of(Overrides.NONE, calls);
  }

  /** A block that differs, with these calls. */
  public static Simulation of(Overrides overrides, Call... calls) {
    return new Simulation(List.of(), false, false, false).then(overrides, calls);
  }

  /** And then a block with these calls. */
  public Simulation then(Call... calls) {
    return then(Overrides.NONE, calls);
  }

  /** And then a block that differs, with these calls. */
  public Simulation then(Overrides overrides, Call... calls) {
    List<Part> all = new ArrayList<>(parts);
    all.add(new Part(overrides, List.of(calls)));
    return new Simulation(List.copyOf(all), validation, transfers, transactions);
  }

  /** With the rules of real transactions: nonces, fees and balances count. */
  public Simulation withValidation() {
    return new Simulation(parts, true, transfers, transactions);
  }

  /** With a log for each transfer of ether, as of an ERC-20 token at {@code 0xeeee..}. */
  public Simulation withTransfers() {
    return new Simulation(parts, validation, true, transactions);
  }

  /** With the transactions in the blocks, and not their hashes alone. */
  public Simulation withTransactions() {
    return new Simulation(parts, validation, transfers, true);
  }

  /** Writes it as a parameter. */
  void write(JsonWriter json) {
    json.beginObject().name("blockStateCalls").beginArray();
    for (Part part : parts) {
      json.beginObject();
      if (part.overrides.hasBlock()) {
        part.overrides.writeBlock(json.name("blockOverrides"));
      }
      if (part.overrides.hasState()) {
        part.overrides.writeState(json.name("stateOverrides"));
      }
      json.name("calls").beginArray();
      part.calls.forEach(call -> call.write(json));
      json.endArray().endObject();
    }
    json.endArray();
    flag("validation", validation, json);
    flag("traceTransfers", transfers, json);
    flag("returnFullTransactions", transactions, json);
    json.endObject();
  }

  private static void flag(String name, boolean value, JsonWriter json) {
    if (value) {
      json.name(name).value(true);
    }
  }
}
