package deponent.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.junit.jupiter.api.Test;

/** What is measured: the same results from all libraries. */
class OperationsTest {
  @Test
  void allLibrariesDoTheSame() throws Exception {
    if (!Jars.present()) {
      System.out.println("not run with Brane: no DEPONENT_BRANE (sdk/java/bench/README.md)");
    }
    Map<String, Operation> ours = Library.operations(Library.OURS);
    for (String library : Library.names()) {
      Map<String, Operation> theirs = Library.operations(library);
      assertTrue(ours.keySet().containsAll(theirs.keySet()), library);
      for (String name : theirs.keySet()) {
        assertEquals(result(ours.get(name)), result(theirs.get(name)), library + ": " + name);
      }
    }
  }

  private static String result(Operation operation) throws Exception {
    return operation.text().apply(operation.work().call());
  }

  @Test
  void aMiniatureOfTheOperations() throws Exception {
    String tables = new CpuReport(1, 5, 0).run().tables();
    for (String name : Library.operations(Library.OURS).keySet()) {
      assertTrue(tables.contains("| " + name + " |"), tables);
    }
  }
}
