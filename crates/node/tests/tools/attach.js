// Prints what geth's console reads from the attached node, as one line of JSON. The test
// puts form.js, and `given`, before it.

const full = true;
console.log(JSON.stringify({
  chainId: Number(eth.chainId()),
  blockNumber: eth.blockNumber,
  latest: block(eth.getBlock('latest')),
  latestFull: block(eth.getBlock('latest', full)),
  byNumber: block(eth.getBlock(eth.blockNumber)),
  byHash: block(eth.getBlock(given.hash)),
  byHashFull: block(eth.getBlock(given.hash, full)),
  transactionCount: eth.getBlockTransactionCount(given.hash),
  transaction: transaction(eth.getTransactionFromBlock(given.hash, 1)),
  transactionByNumber: transaction(eth.getTransactionFromBlock(eth.blockNumber, 3)),
  receipts: eth.getBlockReceipts(given.hash).map(receipt),
  balance: amount(eth.getBalance(given.account)),
  nonce: eth.getTransactionCount(given.account),
  code: eth.getCode(given.contract),
  storage: eth.getStorageAt(given.contract, given.slot),
  call: eth.call({ to: given.contract, data: given.data }),
  proof: proof(eth.getProof(given.contract, [given.slot], 'latest')),
  syncing: eth.syncing,
  client: web3.version.node,
  witness: debug.executionWitness('latest'),
}));
