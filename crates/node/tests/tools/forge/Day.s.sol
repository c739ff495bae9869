// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Till} from "../src/Till.sol";

/// The cheat codes of forge that are used here.
interface Vm {
    function startBroadcast() external;
    function stopBroadcast() external;
}

/// A script of forge: its calls are made as transactions.
contract Day {
    Vm constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    function run() external {
        vm.startBroadcast();
        Till till = new Till(100);
        till.pay{value: 150}("coffee");
        till.setLeast(5);
        till.pay{value: 5}("tea");
        // By the deployer of CREATE2, at an address that is known before.
        new Till{salt: bytes32(uint256(1))}(7);
        vm.stopBroadcast();
        require(till.least() == 5 && address(till).balance == 155);
    }

    /// It fails before anything is sent.
    function refused(Till till) external {
        vm.startBroadcast();
        till.pay{value: 1}("tea");
        vm.stopBroadcast();
    }
}
