// A day with ethers on a chain for tests: contracts, their events and errors, each type of
// transaction, the node's own accounts, a connection that drops, a snapshot, a reorganisation.
//
// DEPONENT_TOOLS=folder node dev_ethers.mjs http://127.0.0.1:8545
import assert from 'node:assert'
import { droppable, phrase, require, till as source, until } from './day.mjs'

const ethers = require('ethers')

const url = process.argv[2]
const socketUrl = url.replace('http', 'ws')
// Nothing that was read is kept, since this chain changes at once, and one request is sent at a
// time, since one with blobs takes seconds on a busy machine.
const options = { cacheTimeout: -1, pollingInterval: 20, batchMaxCount: 1 }
const provider = new ethers.JsonRpcProvider(url, undefined, options)
const [owner, payer, other, saver] = [0, 1, 2, 3].map((index) => {
  const path = `m/44'/60'/0'/0/${index}`
  return ethers.HDNodeWallet.fromPhrase(phrase, '', path).connect(provider)
})

// A provider over WebSocket, which has to know its network before an event comes.
async function connected(place) {
  const socket = new ethers.WebSocketProvider(place, undefined, options)
  await socket.getNetwork()
  return socket
}

const send = async (from, transaction) => (await from.sendTransaction(transaction)).wait()
const pay = async (till, note, value = 200n) =>
  (await till.connect(payer).pay(note, { value })).wait()

async function contracts() {
  const nonce = await owner.getNonce()
  const factory = new ethers.ContractFactory(source.abi, source.bytecode, owner)
  const till = await (await factory.deploy(100n)).waitForDeployment()
  assert.equal(await till.getAddress(), ethers.getCreateAddress({ from: owner.address, nonce }))
  assert.equal(await till.least(), 100n)

  // The receipt has the event.
  const receipt = await pay(till, 'coffee', 150n)
  const { name, args } = till.interface.parseLog(receipt.logs[0])
  assert.deepEqual([name, ...args], ['Paid', payer.address, 150n, 'coffee'])
  assert.equal(await till.paid(payer), 150n)
  assert.equal(await provider.getBalance(till), 150n)
  assert.equal(await till.paid(payer, { blockTag: receipt.blockNumber - 1 }), 0n)
  return till
}

async function errors(till) {
  const poor = till.connect(payer)
  // The estimate of gas fails before anything is sent, in the same way as a call.
  for (const refused of [poor.pay, poor.pay.staticCall]) {
    await assert.rejects(refused('tea', { value: 1n }), ({ code, data }) => {
      const { name, args } = till.interface.parseError(data)
      assert.deepEqual([code, name, ...args], ['CALL_EXCEPTION', 'TooLittle', 1n, 100n])
      return true
    })
  }
  await assert.rejects(poor.setLeast(1n), { code: 'CALL_EXCEPTION', reason: 'only the owner' })
  await assert.rejects(till.share(0n), ({ code, revert: { name, args } }) => {
    assert.deepEqual([code, name, ...args], ['CALL_EXCEPTION', 'Panic', 0x12n])
    return true
  })
  // With a gas limit of its own it is mined, and fails there.
  const mined = await poor.pay('tea', { value: 1n, gasLimit: 100_000n })
  await assert.rejects(mined.wait(), ({ code, receipt }) => {
    assert.deepEqual([code, receipt.status], ['CALL_EXCEPTION', 0])
    return true
  })
  const rich = { to: other, value: ethers.parseEther('20000'), gasLimit: 21_000n }
  await assert.rejects(payer.sendTransaction(rich), { code: 'INSUFFICIENT_FUNDS' })
  const again = { to: other, nonce: 0, gasLimit: 21_000n }
  await assert.rejects(payer.sendTransaction(again), { code: 'NONCE_EXPIRED' })
}

async function events(till) {
  // By the logs of new blocks, by filters of the node, by a subscription.
  const from = (await provider.getBlockNumber()) + 1
  for (const listening of [
    new ethers.JsonRpcProvider(url, undefined, { ...options, polling: true }),
    new ethers.JsonRpcProvider(url, undefined, options),
    await connected(socketUrl),
  ]) {
    const heard = []
    await till.connect(listening).on('Paid', (...values) => heard.push(values))
    // Again and again, since it may begin to listen after the first one.
    await until('an event', () => heard[0], () => pay(till, 'tea'))
    const [who, amount, note, event] = heard[0]
    assert.deepEqual([who, amount, note], [payer.address, 200n, 'tea'])
    assert.equal(event.log.address, await till.getAddress())
    await listening.removeAllListeners()
  }
  const logs = await till.queryFilter(till.filters.Paid(payer), from)
  assert(logs.length >= 3 && logs.every((log) => log.args.note === 'tea'))
  assert.deepEqual(await till.queryFilter(till.filters.Paid(other), 0), [])
}

async function transactions(till) {
  const { chainId } = await provider.getNetwork()
  const { gasPrice } = await provider.getFeeData()
  const to = other.address
  for (const [type, transaction] of [
    [0, { gasPrice }],
    [1, { gasPrice, accessList: [{ address: to, storageKeys: [ethers.ZeroHash] }] }],
    [2, { maxFeePerGas: 2n * gasPrice, maxPriorityFeePerGas: 1n }],
  ]) {
    const receipt = await send(payer, { type, to, value: 1n, ...transaction })
    const sent = await provider.getTransaction(receipt.hash)
    assert.deepEqual([receipt.type, receipt.status, sent.type], [type, 1, type])
    assert.deepEqual(ethers.Transaction.from(sent).from, payer.address)
  }

  // EIP-4844, with a blob. Commitment and proof of an empty one are the point at infinity; those of
  // others are made by a library: `blobs: [bytes], kzg`, with c-kzg or kzg-wasm.
  const infinity = '0xc0' + '00'.repeat(47)
  const blobs = [{ data: new Uint8Array(131_072), commitment: infinity, proof: infinity }]
  const receipt = await send(payer, { type: 3, to, blobs, maxFeePerBlobGas: 10n ** 10n })
  assert.deepEqual([receipt.type, receipt.status, receipt.blobGasUsed], [3, 1, 131_072n])
  const sent = await provider.getTransaction(receipt.hash)
  assert.equal(sent.blobVersionedHashes.length, 1)

  // EIP-7702: an account has the code of the till, until it takes that back.
  const become = async (address) => {
    const authorizationList = [await saver.authorize({ address, chainId })]
    await send(owner, { type: 4, to, authorizationList, gasLimit: 100_000n })
  }
  const address = await till.getAddress()
  await become(address)
  assert.equal(await provider.getCode(saver), '0xef0100' + address.slice(2).toLowerCase())
  const delegated = till.attach(saver.address)
  await pay(delegated, 'to a person', 5n)
  assert.equal(await delegated.paid(payer), 5n)
  await become(ethers.ZeroAddress)
  assert.equal(await provider.getCode(saver), '0x')
}

// The node signs for its accounts.
async function accounts(till) {
  const signer = await provider.getSigner(1)
  assert.equal(signer.address, payer.address)
  await send(signer, { to: other.address, value: 1n })
  await (await till.connect(signer).pay('by the node', { value: 100n })).wait()
  assert.equal(await signer.signMessage('hello'), await payer.signMessage('hello'))
  assert.equal(await signer._legacySignMessage('hello'), await payer.signMessage('hello'))
  const domain = { name: 'Till', version: '1', chainId: 31337, verifyingContract: till.target }
  const types = {
    Person: [{ name: 'name', type: 'string' }, { name: 'wallets', type: 'address[]' }],
    Bill: [{ name: 'to', type: 'Person' }, { name: 'amount', type: 'uint256' }],
  }
  const bill = { to: { name: 'Bob', wallets: [other.address, owner.address] }, amount: 5n }
  const typed = [domain, types, bill]
  assert.equal(await signer.signTypedData(...typed), await payer.signTypedData(...typed))
}

// A connection that drops: the next one asks for what was missed.
async function dropped(till) {
  const path = await droppable(url)
  const over = () => connected(`ws://${path.host}`)
  const [first, heard] = [await over(), []]
  await till.connect(first).on('Paid', (...values) => heard.push(values.at(-1)))
  await until('an event', () => heard[0], () => pay(till, 'before'))
  path.drop()
  await until('its end', () => first.websocket.readyState === first.websocket.CLOSED)
  const { blockNumber } = await pay(till, 'meanwhile')

  const [second, notes] = [await over(), new Set()]
  const again = till.connect(second)
  await again.on('Paid', (from, amount, note) => notes.add(note))
  await until('an event', () => notes.has('after'), () => pay(till, 'after'))
  const missed = await again.queryFilter('Paid', heard.at(-1).log.blockNumber + 1, blockNumber)
  assert(missed.some((log) => log.args.note === 'meanwhile'))
  assert(!notes.has('before'))
  await second.destroy()
  path.close()
}

// A snapshot is come back to, and a block replaced by another one: logs are taken back.
async function turns(till) {
  const socket = await connected(socketUrl)
  const logs = []
  await socket.on({ address: till.target }, (log) => logs.push(log))
  await until('an event', () => logs[0], () => pay(till, 'to listen'))

  for (const back of [
    async () => {
      const id = await provider.send('evm_snapshot', [])
      return () => provider.send('evm_revert', [id])
    },
    async () => () => provider.send('anvil_reorg', [1, []]),
  ]) {
    const turn = await back()
    const before = await till.paid(payer)
    const { hash, blockHash } = await pay(till, 'for nothing')
    assert.equal(await till.paid(payer), before + 200n)
    const log = await until('the log', () => logs.find((log) => log.blockHash === blockHash))
    let removed = false
    // ethers tells of it to those who name the log as it is then; log.removedEvent() does not.
    const orphan = { orphan: 'drop-log', log: { ...log.toJSON(), removed: true } }
    await socket.once(orphan, () => (removed = true))
    await turn()
    assert.equal(await till.paid(payer), before)
    assert.equal(await provider.getTransactionReceipt(hash), null)
    await until('that it is taken back', () => removed)
  }
  await socket.destroy()
}

const till = await contracts()
const done = []
for (const part of [errors, events, transactions, accounts, dropped, turns]) {
  await part(till)
  done.push(part.name)
}
provider.destroy()
process.stdout.write(JSON.stringify({ done }), () => process.exit())
