// viem's test client against a chain for tests: its helpers in both of their names.
import assert from 'node:assert'
import { createRequire } from 'node:module'

const require = createRequire(process.env.DEPONENT_TOOLS + '/node_modules/')
const viem = require('viem')
const { privateKeyToAccount } = require('viem/accounts')
const { foundry } = require('viem/chains')

const transport = viem.http(process.argv[2], { timeout: 300_000 })
const key = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
const account = privateKeyToAccount(key)
const other = '0x' + '22'.repeat(20)
const contract = '0x' + '33'.repeat(20)

async function day(mode) {
  const test = viem.createTestClient({ mode, chain: foundry, transport })
  const client = test.extend(viem.publicActions).extend(viem.walletActions)
  const wallet = viem.createWalletClient({ account, chain: foundry, transport })

  const id = await client.snapshot()
  const begun = await client.getBlockNumber()
  await client.mine({ blocks: 3, interval: 5 })
  assert.equal(await client.getBlockNumber({ cacheTime: 0 }), begun + 3n)

  await client.setBalance({ address: other, value: viem.parseEther('5') })
  await client.impersonateAccount({ address: other })
  let hash = await client.sendTransaction({ account: other, to: account.address, value: 1n })
  assert.equal((await client.waitForTransactionReceipt({ hash })).status, 'success')
  assert.equal((await client.getTransaction({ hash })).from, other)
  await client.stopImpersonatingAccount({ address: other })

  await client.setCode({ address: contract, bytecode: '0x60015f5260205ff3' })
  assert.equal(BigInt((await client.call({ to: contract })).data), 1n)
  await client.setNonce({ address: contract, nonce: 7 })
  const value = '0x' + '09'.padStart(64, '0')
  await client.setStorageAt({ address: contract, index: 0, value })
  assert.equal(await client.getStorageAt({ address: contract, slot: '0x0' }), value)

  await client.increaseTime({ seconds: 100 })
  const timestamp = (await client.getBlock()).timestamp + 5000n
  await client.setNextBlockTimestamp({ timestamp })
  await client.setNextBlockBaseFeePerGas({ baseFeePerGas: 77n })
  await client.mine({ blocks: 1 })
  const block = await client.getBlock()
  assert.deepEqual([block.timestamp, block.baseFeePerGas], [timestamp, 77n])
  await client.setCoinbase({ address: other })
  await client.setBlockGasLimit({ gasLimit: 40_000_000n })

  await client.setAutomine(false)
  hash = await wallet.sendTransaction({ to: other, value: 9n })
  assert.deepEqual(await client.getTxpoolStatus(), { pending: 1, queued: 0 })
  assert.equal(Object.keys((await client.getTxpoolContent()).pending).length, 1)
  await client.dropTransaction({ hash })
  assert.deepEqual(await client.getTxpoolStatus(), { pending: 0, queued: 0 })
  await client.setAutomine(true)
  await client.setIntervalMining({ interval: 0 })

  // A contract that returns 42.
  const bytecode = '0x6008600c60003960086000f3602a5f5260205ff3'
  hash = await wallet.deployContract({ abi: [], bytecode })
  const receipt = await client.waitForTransactionReceipt({ hash })
  assert.equal(BigInt((await client.call({ to: receipt.contractAddress })).data), 42n)

  await client.revert({ id })
  assert.equal(await client.getBlockNumber({ cacheTime: 0 }), begun)
  await client.setLoggingEnabled(true)
  await client.reset()
  assert.equal(await client.getBlockNumber({ cacheTime: 0 }), 0n)
  await client.sendUnsignedTransaction({ from: account.address, to: other, value: 1n })
  assert.equal(await client.getBlockNumber({ cacheTime: 0 }), 1n)
  await client.reset()
  return mode
}

const done = [await day('anvil'), await day('hardhat')]
console.log(JSON.stringify({ done }))
