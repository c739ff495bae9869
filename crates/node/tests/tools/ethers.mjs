// Prints what ethers reads from a node over each of its transports, as one JSON object.
//
// DEPONENT_TOOLS=folder node ethers.mjs '{"http", "ws", "ipc", "hash", "account", "contract", ...}'

import { createRequire } from 'node:module';

const require = createRequire(`${process.env.DEPONENT_TOOLS}/`);
const { JsonRpcProvider, WebSocketProvider, IpcSocketProvider } = require('ethers');
const form = createRequire(import.meta.url)('./form.js');

const given = JSON.parse(process.argv[2]);
const { hash, account, contract, slot, data } = given;

const transaction = ({ index, gasLimit, data, ...tx }) =>
  form.transaction({ ...tx, transactionIndex: index, gas: gasLimit, input: data });
const full = (found) => ({
  ...form.block(found),
  transactions: found.prefetchedTransactions.map(transaction),
});

async function read(provider) {
  const raw = (method, ...params) => provider.send(method, params);
  const blockNumber = await provider.getBlockNumber();
  const number = `0x${blockNumber.toString(16)}`;
  return {
    chainId: Number((await provider.getNetwork()).chainId),
    blockNumber,
    latest: form.block(await provider.getBlock('latest')),
    latestFull: full(await provider.getBlock('latest', true)),
    byNumber: form.block(await provider.getBlock(blockNumber)),
    byHash: form.block(await provider.getBlock(hash)),
    byHashFull: full(await provider.getBlock(hash, true)),
    transactionCount: Number(await raw('eth_getBlockTransactionCountByHash', hash)),
    transaction: form.transaction(await raw('eth_getTransactionByBlockHashAndIndex', hash, '0x1')),
    transactionByNumber: form.transaction(
      await raw('eth_getTransactionByBlockNumberAndIndex', number, '0x3'),
    ),
    receipts: (await raw('eth_getBlockReceipts', hash)).map(form.receipt),
    balance: form.amount(await provider.getBalance(account)),
    nonce: await provider.getTransactionCount(account),
    code: await provider.getCode(contract),
    storage: await provider.getStorage(contract, slot),
    call: await provider.call({ to: contract, data }),
    proof: form.proof(await raw('eth_getProof', contract, [slot], 'latest')),
    syncing: await raw('eth_syncing'),
    client: await raw('web3_clientVersion'),
    witness: await raw('debug_executionWitness', 'latest'),
  };
}

// All that is asked for within some milliseconds is one request.
async function batch() {
  const provider = new JsonRpcProvider(given.http);
  const [balance, nonce, code] = await Promise.all([
    provider.getBalance(account),
    provider.getTransactionCount(account),
    provider.getCode(contract),
  ]);
  return [form.amount(balance), nonce, code];
}

// One request each, where nothing else is wanted.
const single = new JsonRpcProvider(given.http, undefined, { batchMaxCount: 1 });
const found = {
  http: { ...(await read(single)), batch: await batch() },
  ws: await read(new WebSocketProvider(given.ws)),
  ipc: await read(new IpcSocketProvider(given.ipc)),
};
// The sockets would keep the program alive.
process.stdout.write(JSON.stringify(found), () => process.exit());
