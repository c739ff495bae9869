// Prints Till.json: interface and code of Till.sol, by the compiler of npm's `solc`; or those of a
// file that is named, which has a contract of its name.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename } from 'node:path'

const solc = createRequire(process.cwd() + '/')('solc')
const file = process.argv[2] ?? new URL('Till.sol', import.meta.url)
const name = basename(process.argv[2] ?? 'Till.sol', '.sol')
const content = readFileSync(file, 'utf8')
const input = {
  language: 'Solidity',
  sources: { [name + '.sol']: { content } },
  settings: {
    evmVersion: 'cancun',
    optimizer: { enabled: true },
    metadata: { bytecodeHash: 'none' },
    outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
  },
}
const { errors, contracts } = JSON.parse(solc.compile(JSON.stringify(input)))
if (errors) throw new Error(errors.map((error) => error.formattedMessage).join('\n'))
const { abi, evm } = contracts[name + '.sol'][name]
console.log(JSON.stringify({ compiler: solc.version(), abi, bytecode: '0x' + evm.bytecode.object }, null, 1))
