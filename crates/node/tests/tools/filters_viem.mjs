// viem's filters against a chain for tests, which poll for what is new.
import assert from 'node:assert'
import { createRequire } from 'node:module'

const require = createRequire(process.env.DEPONENT_TOOLS + '/node_modules/')
const viem = require('viem')
const { foundry } = require('viem/chains')

const transport = viem.http(process.argv[2])
const test = viem.createTestClient({ mode: 'anvil', chain: foundry, transport })
const client = test.extend(viem.publicActions).extend(viem.walletActions)
const [account] = await client.getAddresses()
const logger = '0x' + '44'.repeat(20)
const event = viem.parseAbiItem('event Said(uint256 indexed word)')
const topic = viem.toEventSelector(event)

// Logs its event with the first word of the input.
const code = `0x5f357f${topic.slice(2)}5f5fa2`
await client.setCode({ address: logger, bytecode: code })
const say = (word) =>
  client.sendTransaction({ account, to: logger, data: viem.toHex(word, { size: 32 }) })

const filters = {
  blocks: await client.createBlockFilter(),
  logs: await client.createEventFilter({ address: logger, event }),
  pending: await client.createPendingTransactionFilter(),
}
const news = (name) => client.getFilterChanges({ filter: filters[name] })
const id = await client.snapshot()
const hash = await say(5n)
const [block] = await news('blocks')
const [log] = await news('logs')
assert.deepEqual([log.transactionHash, log.blockHash, log.args.word], [hash, block, 5n])
await client.revert({ id })
const [gone] = await news('logs')
assert.deepEqual([gone.removed, gone.transactionHash], [true, hash])
await say(6n)

assert.equal((await news('logs'))[0].args.word, 6n)
assert.equal((await news('pending')).length, 2)
assert.equal((await client.getFilterLogs({ filter: filters.logs })).length, 1)
assert.equal(await client.uninstallFilter({ filter: filters.logs }), true)

// The same by the actions that watch, which make filters of their own by their first poll.
const done = new Set()
const onError = (error) => { throw error }
const watched = { poll: true, pollingInterval: 50, onError }
client.watchEvent({ ...watched, address: logger, event, onLogs: () => done.add('logs') })
client.watchPendingTransactions({ ...watched, onTransactions: () => done.add('pending') })
client.watchBlocks({ ...watched, onBlock: () => done.add('blocks') })
while (done.size < 3) {
  await say(7n)
  await new Promise((resolve) => setTimeout(resolve, 100))
}
console.log(JSON.stringify({ done: [...done].sort() }))
process.exit(0)
