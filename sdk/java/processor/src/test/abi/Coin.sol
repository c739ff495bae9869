// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

// A token for tests of generated code. `Coin.json` has what a compiler makes of it:
//
//   npm install solc@0.8.37
//   node ROOT/crates/node/tests/tools/compile.mjs PATH/Coin.sol > Coin.json

/// A token in the manner of ERC-20, with structs, overloads and errors.
contract Coin {
    struct Grant {
        address to;
        uint256 amount;
    }

    struct Round {
        string memo;
        Grant[] grants;
        uint64[2] window;
    }

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Granted(string indexed memo, Round round);

    error InsufficientBalance(address sender, uint256 balance, uint256 needed);
    error Closed(uint64[2] window, string memo);

    string public name;
    mapping(address => uint256) public balanceOf;
    uint256 private total;

    constructor(string memory name_, uint256 supply_) payable {
        name = name_;
        mint(msg.sender, supply_);
    }

    function mint(address to, uint256 amount) private {
        total += amount;
        balanceOf[to] += amount;
        emit Transfer(address(0), to, amount);
    }

    function transfer(address to, uint256 value) public returns (bool) {
        uint256 balance = balanceOf[msg.sender];
        if (balance < value) revert InsufficientBalance(msg.sender, balance, value);
        balanceOf[msg.sender] = balance - value;
        balanceOf[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }

    function transfer(Grant calldata grant) external returns (bool) {
        return transfer(grant.to, grant.amount);
    }

    function give(Round calldata round) external returns (uint256 count) {
        if (round.window[1] < round.window[0]) revert Closed(round.window, round.memo);
        for (; count < round.grants.length; count++) {
            transfer(round.grants[count].to, round.grants[count].amount);
        }
        emit Granted(round.memo, round);
    }

    /// Mints for ether.
    function buy(uint8 rate) external payable {
        mint(msg.sender, msg.value * rate);
    }

    function supply() external view returns (uint256 amount, uint8 decimals) {
        return (total, 18);
    }

    function echo(Round[] calldata rounds) external pure returns (Round[] memory) {
        return rounds;
    }

    function sender() external view returns (address) {
        return msg.sender;
    }
}
