//go:build tools

// Package tools names the programs of Prysm that the devnet runs, so that the
// go command keeps the modules they need in go.mod and go.sum.
package tools

import (
	_ "github.com/OffchainLabs/prysm/v7/cmd/beacon-chain"
	_ "github.com/OffchainLabs/prysm/v7/cmd/prysmctl"
	_ "github.com/OffchainLabs/prysm/v7/cmd/validator"
)
