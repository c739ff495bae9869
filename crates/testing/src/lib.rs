//! What the tests of several crates share: worlds to run blocks in, disks that fail, slow oracles.
