//! Ethereum chain files and state dumps: era1, era, RLP, payload lines, genesis and dump formats.
