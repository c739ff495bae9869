// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

// The contract of the scripts of this folder. `Till.json` has what a compiler makes of it:
//
//   npm install solc@0.8.37
//   node PATH/compile.mjs > Till.json

/// A till, which takes money from a least amount on and remembers who paid.
contract Till {
    event Paid(address indexed from, uint256 amount, string note);

    error TooLittle(uint256 offered, uint256 least);

    address public owner;
    uint256 public least;
    mapping(address => uint256) public paid;

    constructor(uint256 least_) {
        owner = msg.sender;
        least = least_;
    }

    /// Reverts with a custom error.
    function pay(string calldata note) external payable {
        if (msg.value < least) revert TooLittle(msg.value, least);
        paid[msg.sender] += msg.value;
        emit Paid(msg.sender, msg.value, note);
    }

    /// Reverts with a reason.
    function setLeast(uint256 least_) external {
        require(msg.sender == owner, "only the owner");
        least = least_;
    }

    /// Reverts with a panic where `parts` is zero.
    function share(uint256 parts) external view returns (uint256) {
        return address(this).balance / parts;
    }
}
