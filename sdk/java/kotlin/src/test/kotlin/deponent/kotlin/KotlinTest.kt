package deponent.kotlin

import deponent.client.BlockId
import deponent.client.Call
import deponent.client.Update
import deponent.eth.AbiFunction
import deponent.eth.Address
import deponent.eth.RpcException
import deponent.eth.Wei
import deponent.testing.DevNode
import java.io.ByteArrayOutputStream
import java.io.PrintStream
import java.math.BigInteger
import java.nio.file.Path
import org.jetbrains.kotlin.cli.jvm.K2JVMCompiler
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Assertions.fail
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** The SDK from Kotlin: what may be null is known to its compiler, and nothing else may. */
class KotlinTest {
  private val friend: Address = Address.of("0x00000000000000000000000000000000000000aa")

  private val transfer =
    AbiFunction.of("transfer(address to, uint256 value) returns (bool)")

  @Test
  fun valuesAndTheAbi() {
    val data = transfer.encode(friend, Wei.ether("0.5"))
    val read = transfer.decodeArguments(data)
    assertEquals(friend, read.address("to"))
    assertEquals(BigInteger("500000000000000000"), read.integer("value"))
    assertEquals(Wei.of(3), Wei.of(1).plus(Wei.of(2)))
  }

  @Test
  fun whatMayBeNullIsOfANullableType() {
    val data: String? = RpcException(-32000, "no", null).data()
    assertNull(data)
    // A value of a type that has no null needs no check.
    val message: String = RpcException(-32000, "no", data).message ?: fail()
    assertTrue(message.contains("no"))
  }

  @Test
  fun aChainIsAskedAndSentTo() {
    if (System.getenv("DEPONENT_BINARY") == null) {
      if (System.getenv("CI") != null) {
        fail<Unit>("CI needs deponent, by DEPONENT_BINARY (sdk/java/README.md)")
      }
      println("not run: no deponent, by DEPONENT_BINARY (sdk/java/README.md)")
      return
    }
    DevNode.start().use { node ->
      val eth = node.client().eth()
      eth.followHeads().use { heads ->
        val receipt = eth.account(node.account(0)).send(Call.to(friend).value(Wei.of(7))).await()
        assertTrue(receipt.succeeded())
        assertEquals(Wei.of(7), eth.balance(friend))
        assertEquals(1L, eth.block(BlockId.LATEST).orElseThrow().number())
        assertNull(eth.block(BlockId.of(99)).orElse(null))
        val number =
          when (val update = heads.iterator().next()) {
            is Update.Added -> update.value().number()
            is Update.Removed -> -1L
            is Update.Gap -> -2L
          }
        assertEquals(1L, number)
      }
    }
  }

  /** The lines, from 1 on, at which the compiler finds a fault. */
  private fun faults(folder: Path, source: String): List<Int> {
    val file = folder.resolve("Wrong.kt").toFile()
    file.writeText(source)
    val printed = ByteArrayOutputStream()
    K2JVMCompiler()
      .exec(
        PrintStream(printed, true, Charsets.UTF_8),
        "-no-stdlib",
        "-no-reflect",
        "-classpath",
        System.getProperty("java.class.path"),
        "-d",
        folder.toString(),
        file.path,
      )
    val fault = Regex("""Wrong\.kt:(\d+):\d+: error: """)
    val text = printed.toString(Charsets.UTF_8)
    return fault.findAll(text).map { it.groupValues[1].toInt() }.toList()
  }

  @Test
  fun nullIsRefusedByTheCompiler(@TempDir folder: Path) {
    val wrong =
      """
      import deponent.client.Call
      import deponent.eth.*
      fun a() = Address.of(null as String?)
      fun b(of: RpcException): String = of.data()
      fun c(of: RpcException): Int = of.data().length
      fun d(to: Address?) = Call.to(to)
      fun e(values: AbiValues): String = values.text(null)
      fun f(of: RpcException): Int? = of.data()?.length
      fun g(of: Address): String = of.toString()
      """
        .trimIndent()
    assertEquals(listOf(3, 4, 5, 6, 7), faults(folder, wrong).distinct())
  }
}
