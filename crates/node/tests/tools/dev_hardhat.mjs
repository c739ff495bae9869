// Hardhat's network helpers on a chain for tests, which a program has by its URL.
//
// In a project of Hardhat 3 they are `networkHelpers` of a connection to a network of type `http`.
// Here they get a provider of EIP-1193 from the plugin's own hook, since the rest of Hardhat, with
// a chain of its own, is 200 MB.
//
// DEPONENT_TOOLS=folder node dev_hardhat.mjs http://127.0.0.1:8545
import assert from 'node:assert'
import { require, till as source } from './day.mjs'

const { JsonRpcProvider, ContractFactory, Contract, ZeroHash, parseEther } = require('ethers')
const plugin = require.resolve('@nomicfoundation/hardhat-network-helpers/package.json')
const hooks = await import(new URL('dist/src/internal/hook-handlers/network.js', `file://${plugin}`))

const ethers = new JsonRpcProvider(process.argv[2], undefined, { cacheTimeout: -1, batchMaxCount: 1 })
const provider = { request: ({ method, params }) => ethers.send(method, params ?? []) }
const { newConnection } = await hooks.default()
const connection = await newConnection({}, async () => ({ provider, networkName: 'dev' }))
const helpers = connection.networkHelpers
const { time } = helpers
const other = '0x' + '22'.repeat(20)
const height = () => time.latestBlock()

async function blocks() {
  const begun = await height()
  await helpers.mine()
  await helpers.mine(3, { interval: 10 })
  assert.equal(await height(), begun + 4)
  const [last, before] = [await ethers.getBlock(begun + 4), await ethers.getBlock(begun + 3)]
  assert.equal(last.timestamp - before.timestamp, 10)
  await helpers.mineUpTo(begun + 9)
  assert.equal(await height(), begun + 9)

  const now = await time.latest()
  assert.equal(await time.increase(3600), now + 3600)
  await time.increaseTo(now + time.duration.days(1))
  assert.equal(await time.latest(), now + 86_400)
  await time.setNextBlockTimestamp(now + 100_000)
  await helpers.setNextBlockBaseFeePerGas(77)
  await helpers.setPrevRandao(5)
  await helpers.setCoinbase(other)
  await helpers.setBlockGasLimit(40_000_000)
  await helpers.mine()
  const block = await ethers.getBlock('latest')
  const { timestamp, baseFeePerGas, prevRandao, miner, gasLimit } = block
  assert.deepEqual([timestamp, baseFeePerGas, miner], [now + 100_000, 77n, other])
  assert.deepEqual([BigInt(prevRandao), gasLimit], [5n, 40_000_000n])
}

async function accounts() {
  await helpers.setBalance(other, parseEther('5'))
  await helpers.setNonce(other, 7)
  await helpers.setCode(other, '0x60015f5260205ff3')
  await helpers.setStorageAt(other, 3, 9)
  assert.equal(await ethers.getBalance(other), parseEther('5'))
  assert.equal(await ethers.getTransactionCount(other), 7)
  assert.equal(BigInt(await ethers.call({ to: other })), 1n)
  assert.equal(BigInt(await helpers.getStorageAt(other, 3)), 9n)

  // A contract sends, too.
  await helpers.impersonateAccount(other)
  const hash = await ethers.send('eth_sendTransaction', [{ from: other, to: other, value: '0x1' }])
  assert.equal((await ethers.getTransactionReceipt(hash)).status, 1)
  await helpers.stopImpersonatingAccount(other)
  const again = ethers.send('eth_sendTransaction', [{ from: other, to: other, gas: '0x5208' }])
  await assert.rejects(again)

  await ethers.send('evm_setAutomine', [false])
  const [who] = await ethers.send('eth_accounts', [])
  const waits = await ethers.send('eth_sendTransaction', [{ from: who, to: who }])
  assert.equal(await helpers.dropTransaction(waits), true)
  assert.equal(await ethers.getTransaction(waits), null)
  await ethers.send('evm_setAutomine', [true])
}

async function snapshots() {
  const begun = await height()
  const snapshot = await helpers.takeSnapshot()
  for (let again = 0; again < 2; again += 1) {
    await helpers.mine(2)
    await snapshot.restore()
    assert.equal(await height(), begun)
  }
  // Each test begins with the contract as it was when it was deployed.
  let deployed = 0
  async function deploy() {
    deployed += 1
    const signer = await ethers.getSigner()
    const till = await new ContractFactory(source.abi, source.bytecode, signer).deploy(100n)
    await till.waitForDeployment()
    return till
  }
  for (let again = 0; again < 3; again += 1) {
    const till = await helpers.loadFixture(deploy)
    assert.equal(await till.least(), 100n)
    await (await till.setLeast(5n)).wait()
    assert.equal(await till.least(), 5n)
  }
  assert.equal(deployed, 1)
}

const done = []
for (const part of [blocks, accounts, snapshots]) {
  await part()
  done.push(part.name)
}
ethers.destroy()
process.stdout.write(JSON.stringify({ done }), () => process.exit())
