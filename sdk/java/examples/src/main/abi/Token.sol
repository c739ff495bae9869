// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

// A token in the manner of ERC-20. `Token.json` has what a compiler makes of it:
//
//   npm install solc@0.8.37
//   node ROOT/crates/node/tests/tools/compile.mjs PATH/Token.sol > Token.json

contract Token {
    mapping(address => uint256) public balanceOf;

    event Transfer(address indexed from, address indexed to, uint256 value);

    error InsufficientBalance(uint256 available, uint256 required);

    constructor(uint256 supply) {
        balanceOf[msg.sender] = supply;
        emit Transfer(address(0), msg.sender, supply);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        uint256 available = balanceOf[msg.sender];
        if (available < value) revert InsufficientBalance(available, value);
        balanceOf[msg.sender] = available - value;
        balanceOf[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }
}
