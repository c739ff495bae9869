// A day with viem on a chain for tests: contracts, their events and errors, each type of
// transaction, the node's own accounts, a connection that drops and comes back, a reorganisation.
//
// DEPONENT_TOOLS=folder node dev_viem_user.mjs http://127.0.0.1:8545
import assert from 'node:assert'
import { droppable, phrase, require, till as source, until } from './day.mjs'

const viem = require('viem')
const { mnemonicToAccount } = require('viem/accounts')
const { foundry: chain } = require('viem/chains')

const url = process.argv[2]
// A request with blobs takes seconds on a busy machine.
const timeout = 300_000
const transport = viem.http(url, { timeout })
const client = viem.createTestClient({
  mode: 'anvil', chain, transport, cacheTime: 0, pollingInterval: 20,
}).extend(viem.publicActions)
const [owner, payer, saver] = [0, 1, 3].map((addressIndex) =>
  viem.createWalletClient({
    account: mnemonicToAccount(phrase, { addressIndex }), chain, transport, cacheTime: 0,
  }))
const other = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
const who = payer.account.address
const { abi, bytecode } = source

const mined = async (hash) => client.waitForTransactionReceipt({ hash: await hash })
const pay = (address, note, value = 200n) =>
  mined(payer.writeContract({ address, abi, functionName: 'pay', args: [note], value }))

async function contracts() {
  const deployed = await mined(owner.deployContract({ abi, bytecode, args: [100n] }))
  const till = viem.getContract({ address: deployed.contractAddress, abi, client })
  assert.equal(await till.read.least(), 100n)

  // The receipt has the event.
  const receipt = await pay(till.address, 'coffee', 150n)
  const [{ eventName, args }] = viem.parseEventLogs({ abi, logs: receipt.logs })
  assert.deepEqual([eventName, args], ['Paid', { from: who, amount: 150n, note: 'coffee' }])
  assert.equal(await till.read.paid([who]), 150n)
  assert.equal(await client.getBalance({ address: till.address }), 150n)
  return till
}

async function errors(till) {
  const call = { address: till.address, abi, account: payer.account }
  const fails = async (promise, kind, check) => {
    await assert.rejects(promise, (error) => {
      const cause = error.walk((cause) => cause instanceof kind)
      assert(cause, error)
      check(cause)
      return true
    })
  }
  const Reverted = viem.ContractFunctionRevertedError
  const poor = { ...call, functionName: 'pay', args: ['tea'], value: 1n }
  for (const refuse of [(it) => client.simulateContract(it), (it) => payer.writeContract(it)]) {
    await fails(refuse(poor), Reverted, ({ data }) => {
      assert.deepEqual([data?.errorName, data?.args], ['TooLittle', [1n, 100n]])
    })
  }
  const change = { ...call, functionName: 'setLeast', args: [1n] }
  await fails(client.simulateContract(change), Reverted, ({ reason }) => {
    assert.equal(reason, 'only the owner')
  })
  await fails(till.read.share([0n]), Reverted, ({ data, reason }) => {
    assert.deepEqual([data.errorName, data.args], ['Panic', [0x12n]])
    assert(reason.includes('divided by zero') || reason.includes('Division'), reason)
  })
  const failing = await mined(payer.writeContract({ ...poor, gas: 100_000n }))
  assert.equal(failing.status, 'reverted')
  const rich = payer.sendTransaction({ to: other, value: viem.parseEther('20000'), gas: 21_000n })
  await fails(rich, viem.InsufficientFundsError, () => {})
  const again = payer.sendTransaction({ to: other, nonce: 0, gas: 21_000n })
  await fails(again, viem.NonceTooLowError, () => {})
}

async function events(till) {
  // By filters of the node, by the logs of new blocks, by a subscription.
  const socket = viem.createPublicClient({
    chain, transport: viem.webSocket(url.replace('http', 'ws'), { timeout }),
  })
  for (const [listening, more] of [[client, {}], [client, { fromBlock: 0n }], [socket, {}]]) {
    const heard = []
    const stop = listening.watchContractEvent({
      address: till.address, abi, eventName: 'Paid', ...more,
      onLogs: (logs) => heard.push(...logs),
    })
    // Again and again, since it may begin to listen after the first one.
    const found = () => heard.find((log) => log.args.note === 'tea')
    await until('an event', found, () => pay(till.address, 'tea'))
    assert.deepEqual(found().args, { from: who, amount: 200n, note: 'tea' })
    stop()
  }
  const of = (from) =>
    client.getContractEvents({ address: till.address, abi, args: { from }, fromBlock: 0n })
  assert((await of(who)).length >= 4)
  assert.deepEqual(await of(other), [])
}

async function transactions(till) {
  const gasPrice = await client.getGasPrice()
  const accessList = [{ address: other, storageKeys: [viem.zeroHash] }]
  for (const [type, fields] of [
    ['legacy', { gasPrice }],
    ['eip2930', { gasPrice, accessList }],
    ['eip1559', { maxFeePerGas: 2n * gasPrice, maxPriorityFeePerGas: 1n }],
  ]) {
    const receipt = await mined(payer.sendTransaction({ type, to: other, value: 1n, ...fields }))
    assert.deepEqual([receipt.type, receipt.status], [type, 'success'])
  }

  // EIP-4844, with a blob. Commitment and proof of an empty one are the point at infinity; those of
  // others are made by a library, as c-kzg.
  const infinity = viem.hexToBytes('0xc0' + '00'.repeat(47))
  const kzg = { blobToKzgCommitment: () => infinity, computeBlobKzgProof: () => infinity }
  const blobs = [new Uint8Array(131_072)]
  const maxFeePerBlobGas = 10n ** 10n
  const blob = await mined(payer.sendTransaction({ to: other, blobs, kzg, maxFeePerBlobGas }))
  assert.deepEqual([blob.type, blob.status, blob.blobGasUsed], ['eip4844', 'success', 131_072n])

  // EIP-7702: an account has the code of the till, until it takes that back.
  const become = async (contractAddress) => {
    const order = await saver.signAuthorization({ contractAddress })
    return mined(owner.sendTransaction({ to: other, authorizationList: [order] }))
  }
  const { address } = saver.account
  assert.equal((await become(till.address)).type, 'eip7702')
  assert.equal(await client.getCode({ address }), viem.concat(['0xef0100', till.address]))
  await pay(address, 'to a person', 5n)
  const delegated = { address, abi, functionName: 'paid', args: [who] }
  assert.equal(await client.readContract(delegated), 5n)
  await become(viem.zeroAddress)
  assert.equal(await client.getCode({ address }), undefined)
}

// The node signs for its accounts.
async function accounts(till) {
  const node = viem.createWalletClient({ account: who, chain, transport })
  assert.equal((await node.getAddresses())[1], who)
  assert.equal((await mined(node.sendTransaction({ to: other, value: 1n }))).status, 'success')
  const message = { message: 'hello' }
  assert.equal(await node.signMessage(message), await payer.signMessage(message))
  const typed = {
    domain: { name: 'Till', chainId: 31337, verifyingContract: till.address },
    types: { Bill: [{ name: 'to', type: 'address' }, { name: 'amount', type: 'uint256' }] },
    primaryType: 'Bill',
    message: { to: other, amount: 5n },
  }
  assert.equal(await node.signTypedData(typed), await payer.signTypedData(typed))
}

// A connection that drops: viem makes another one, and subscribes again.
async function dropped(till) {
  const path = await droppable(url)
  const socket = viem.createPublicClient({
    chain,
    transport: viem.webSocket(`ws://${path.host}`, {
      timeout, reconnect: { delay: 100, attempts: 1000 },
    }),
  })
  const heard = new Set()
  const stop = socket.watchContractEvent({
    address: till.address, abi, eventName: 'Paid',
    onLogs: (logs) => logs.forEach((log) => heard.add(log.args.note)),
    onError: () => {},
  })
  await until('an event', () => heard.has('before'), () => pay(till.address, 'before'))
  path.drop()
  await until('an event after it', () => heard.has('after'), () => pay(till.address, 'after'))
  stop()
  path.close()
}

// A snapshot is come back to, and a block replaced by another one: a filter takes logs back.
async function turns(till) {
  const filter = await client.createContractEventFilter({ address: till.address, abi })
  const turn = async (back) => {
    const before = await till.read.paid([who])
    const { transactionHash, blockHash } = await pay(till.address, 'for nothing')
    const news = async () =>
      (await client.getFilterChanges({ filter })).map((log) => [log.removed, log.blockHash])
    assert.deepEqual(await news(), [[false, blockHash]])
    await back()
    assert.deepEqual(await news(), [[true, blockHash]])
    assert.equal(await till.read.paid([who]), before)
    const gone = client.getTransactionReceipt({ hash: transactionHash })
    await assert.rejects(gone, { name: 'TransactionReceiptNotFoundError' })
  }
  const id = await client.snapshot()
  await turn(() => client.revert({ id }))
  await turn(() => client.request({ method: 'anvil_reorg', params: [1, []] }))
}

const till = await contracts()
const done = []
for (const part of [errors, events, transactions, accounts, dropped, turns]) {
  await part(till)
  done.push(part.name)
}
process.stdout.write(JSON.stringify({ done }), () => process.exit())
