package deponent.eth;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import deponent.sets.Sets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class TypedDataTest {
  private static final Address WALLET = Address.of("0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826");
  private static final Address BOB = Address.of("0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB");
  private static final Address VERIFIER = Address.of("0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC");

  private static Map<String, List<TypedData.Field>> typesOf(Object tree) {
    Map<String, List<TypedData.Field>> types = new LinkedHashMap<>();
    ((Map<?, ?>) tree)
        .forEach(
            (name, fields) ->
                types.put(
                    (String) name,
                    ((List<?>) fields)
                        .stream()
                            .map(field -> (Map<?, ?>) field)
                            .map(
                                field ->
                                    new TypedData.Field(
                                        (String) field.get("name"), (String) field.get("type")))
                            .toList()));
    return types;
  }

  @Test
  void theSetIsHashedAndItsJsonReadAgain() {
    List<Map<String, Object>> set = Sets.ethers("eip712");
    Sets.counted(set, 1_025);
    for (Map<String, Object> test : set) {
      String name = (String) test.get("name");
      TypedData data =
          TypedDataJson.of(
              typesOf(test.get("types")),
              (String) test.get("primaryType"),
              test.get("domain"),
              test.get("data"));
      assertEquals(test.get("encoded"), data.encoded().toString(), name);
      assertEquals(test.get("digest"), data.hash().toString(), name);
      assertEquals(data.hash(), TypedData.ofJson(data.toJson()).hash(), name);
    }
  }

  private static TypedData mail(Object from) {
    return TypedData.of(
        TypedData.domain("Ether Mail", "1", 1, VERIFIER),
        "Mail",
        TypedData.types(
            "Mail(Person from,Person to,string contents)", "Person(string name,address wallet)"),
        Map.of("from", from, "to", List.of("Bob", BOB), "contents", "Hello, Bob!"));
  }

  @Test
  void theExampleOfTheProposalIsHashed() {
    TypedData mail = mail(Map.of("name", "Cow", "wallet", WALLET));
    assertEquals(
        "Mail(Person from,Person to,string contents)Person(string name,address wallet)",
        mail.typeText("Mail"));
    assertEquals(
        "0xf2cee375fa42b42143804025fc449deafd50cc031ca257e0b194a650a912090f",
        mail.domainSeparator().toString());
    assertEquals(
        "0xc52c0ee5d84264471806290a3f2c4cecfc5490626bf912d01f240d7a274b371e",
        mail.messageHash().toString());
    assertEquals(
        "0xbe609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2",
        mail.hash().toString());
    assertEquals(mail.hash(), TypedData.ofJson(mail.toJson()).hash());
    assertEquals("1", String.valueOf(mail.chainId()));
  }

  private static void refused(String reason, Runnable made) {
    Throwable thrown = assertThrows(IllegalArgumentException.class, made::run);
    assertTrue(thrown.getMessage().contains(reason), thrown.getMessage());
  }

  @Test
  void valuesAndTypesThatDoNotFitAreRefusedWithTheirPlace() {
    refused("message.from.wallet: there is no value", () -> mail(Map.of("name", "Cow")));
    refused("message.from.name: Integer is no value of string", () -> mail(List.of(1, WALLET)));
    refused("message.from: String is no value of Person", () -> mail("Cow"));
    Map<String, Object> domain = Map.of("name", "a");
    refused("there is no type 'B'", () -> TypedData.of(domain, "B", Map.of(), Map.of()));
    refused(
        "no type of the ABI: 'Cow'",
        () -> TypedData.of(domain, "A", TypedData.types("A(Cow c)"), Map.of()));
    refused(
        "no type: ", () -> TypedData.of(domain, "A", TypedData.types("A(uint8[x] c)"), Map.of()));
    refused(
        "a domain has no member 'chain'",
        () -> TypedData.of(Map.of("chain", 1), "A", TypedData.types("A()"), Map.of()));
    refused("no type and name", () -> TypedData.types("A(uint8)"));
    refused("no struct", () -> TypedData.types("A"));
    refused(
        "message.c[1]: 256 does not fit uint8",
        () ->
            TypedData.of(
                domain, "A", TypedData.types("A(uint8[2] c)"), Map.of("c", List.of(1, 256))));
    refused(
        "message.c: 1 elements, not 2",
        () -> TypedData.of(domain, "A", TypedData.types("A(uint8[2] c)"), Map.of("c", List.of(1))));
  }

  @Test
  void structsMayNameThemselvesAndMayBeMissing() {
    Map<String, List<TypedData.Field>> types = TypedData.types("Node(uint8 value,Node next)");
    Map<String, Object> domain = Map.of("name", "a");
    Map<String, Object> list = Map.of("value", 1, "next", Map.of("value", 2));
    TypedData data = TypedData.of(domain, "Node", types, list);
    byte[] inner = new byte[96];
    Keccak256.hash("Node(uint8 value,Node next)".getBytes()).copyTo(inner, 0);
    inner[63] = 2;
    byte[] outer = inner.clone();
    outer[63] = 1;
    Keccak256.hash(inner).copyTo(outer, 64);
    assertEquals(Keccak256.hash(outer), data.messageHash());
    assertEquals(data.hash(), TypedData.ofJson(data.toJson()).hash());
    Map<String, Object> deep = Map.of("value", 0);
    for (int i = 0; i < 100; i++) {
      deep = Map.of("value", 0, "next", deep);
    }
    Map<String, Object> deepest = deep;
    refused("nest deeper than 64", () -> TypedData.of(domain, "Node", types, deepest));
  }

  @Test
  void changedJsonIsRefusedOrHashed() {
    Random random = Sets.random();
    byte[] json = mail(Map.of("name", "Cow", "wallet", WALLET)).toJson().getBytes();
    for (int i = 0; i < 20_000; i++) {
      byte[] changed = json.clone();
      changed[random.nextInt(json.length)] = (byte) (32 + random.nextInt(95));
      try {
        TypedData data = TypedData.ofJson(new String(changed));
        assertEquals(data.hash(), TypedData.ofJson(data.toJson()).hash());
      } catch (MalformedException refused) {
        assertTrue(refused.getMessage().length() < 600, refused.getMessage());
      }
    }
  }
}
