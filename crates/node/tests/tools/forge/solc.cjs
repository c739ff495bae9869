#!/usr/bin/env node
// The compiler of npm's `solc` as forge calls it.
const { createRequire } = require('node:module')
const tools = createRequire(process.env.DEPONENT_TOOLS + '/node_modules/')
const compiler = tools('solc')
if (process.argv.includes('--version')) {
  console.log('solc, the solidity compiler commandline interface')
  console.log('Version: ' + compiler.version().replace('.Emscripten.clang', '.Linux.g++'))
} else {
  console.log(compiler.compile(require('node:fs').readFileSync(0, 'utf8')))
}
