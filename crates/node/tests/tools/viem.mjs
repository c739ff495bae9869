// Prints what viem reads from a node over each of its transports, as one JSON object.
//
// DEPONENT_TOOLS=folder node viem.mjs '{"http", "ws", "ipc", "hash", "account", "contract", ...}'

import { createRequire } from 'node:module';

const require = createRequire(`${process.env.DEPONENT_TOOLS}/`);
const { createPublicClient, http, webSocket } = require('viem');
const { ipc } = require('viem/node');
const form = createRequire(import.meta.url)('./form.js');

const given = JSON.parse(process.argv[2]);
const { hash: blockHash, account, contract, slot, data } = given;

const transaction = (tx) => form.transaction({ ...tx, type: tx.typeHex });
const block = (block) => ({
  ...form.block({ ...block, transactions: [] }),
  transactions: block.transactions.map((tx) => (typeof tx === 'string' ? tx : transaction(tx))),
});

async function read(transport) {
  const client = createPublicClient({ transport });
  const raw = (method, ...params) => client.request({ method, params });
  const blockNumber = await client.getBlockNumber();
  const full = { includeTransactions: true };
  return {
    chainId: await client.getChainId(),
    blockNumber: Number(blockNumber),
    latest: block(await client.getBlock()),
    latestFull: block(await client.getBlock(full)),
    byNumber: block(await client.getBlock({ blockNumber })),
    byHash: block(await client.getBlock({ blockHash })),
    byHashFull: block(await client.getBlock({ blockHash, ...full })),
    transactionCount: await client.getBlockTransactionCount({ blockHash }),
    transaction: transaction(await client.getTransaction({ blockHash, index: 1 })),
    transactionByNumber: transaction(await client.getTransaction({ blockNumber, index: 3 })),
    receipts: (await raw('eth_getBlockReceipts', blockHash)).map(form.receipt),
    balance: form.amount(await client.getBalance({ address: account })),
    nonce: await client.getTransactionCount({ address: account }),
    code: await client.getCode({ address: contract }),
    storage: await client.getStorageAt({ address: contract, slot }),
    call: (await client.call({ to: contract, data })).data,
    proof: form.proof(await client.getProof({ address: contract, storageKeys: [slot] })),
    syncing: await raw('eth_syncing'),
    client: await raw('web3_clientVersion'),
    witness: await raw('debug_executionWitness', 'latest'),
  };
}

// All that is asked for before the next turn of the event loop is one request.
async function batch() {
  const client = createPublicClient({ transport: http(given.http, { batch: true }) });
  const [balance, nonce, code] = await Promise.all([
    client.getBalance({ address: account }),
    client.getTransactionCount({ address: account }),
    client.getCode({ address: contract }),
  ]);
  return [form.amount(balance), nonce, code];
}

const found = {
  http: { ...(await read(http(given.http))), batch: await batch() },
  ws: await read(webSocket(given.ws)),
  ipc: await read(ipc(given.ipc)),
};
// The sockets would keep the program alive.
process.stdout.write(JSON.stringify(found), () => process.exit());
