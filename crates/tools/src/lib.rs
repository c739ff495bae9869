//! Commands over any Ethereum JSON-RPC endpoint, and the contract ABI: the parts of Foundry's cast
//! that an operator needs, as commands of the program `deponent`.
//!
//! A [`Command`] is read from the command line, and [`run`] makes text or JSON of it.
//!
//! ```
//! # extern crate deponent_tools as tools;
//! use clap::Parser;
//!
//! #[derive(Parser)]
//! struct Cli {
//!     #[command(subcommand)]
//!     command: tools::Command,
//! }
//!
//! let signature = "transfer(address,uint256)";
//! let Cli { command } = Cli::try_parse_from(["deponent", "abi", "selector", signature])?;
//! assert_eq!(tools::run(&command)?.text, "0xa9059cbb\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod abi;
mod blobs;
mod call;
mod console_log;
mod endpoint;
mod error;
mod input;
mod keys;
mod keystore;
mod limits;
mod logs;
mod reads;
mod request;
mod send;
mod storage;
mod table;
mod trace;
mod typed_data;

use clap::Subcommand;

pub use abi::AbiArgs;
pub use call::{CallArgs, EstimateArgs};
pub use console_log::{CONSOLE, console_line};
pub use error::{Output, exit_status};
pub use logs::LogsArgs;
pub use reads::{
    AccountArgs, BalanceArgs, BlockArgs, ChainArgs, GasPriceArgs, ReceiptArgs, RpcArgs, TxArgs,
};
pub use send::SendArgs;
pub use storage::StorageArgs;
pub use table::date;
pub use typed_data::typed_data_hash;

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Call a function of a contract, without a transaction: deponent call 0x12..
    /// 'balanceOf(address)(uint256)' 0x34..
    Call(CallArgs),
    /// Print the gas that a transaction needs.
    Estimate(EstimateArgs),
    /// Send a transaction, of any type, and wait for its receipt.
    Send(Box<SendArgs>),
    /// Print a block.
    Block(BlockArgs),
    /// Print a transaction.
    Tx(TxArgs),
    /// Print the receipt of a transaction.
    Receipt(ReceiptArgs),
    /// Print logs of blocks, by contract and event.
    Logs(LogsArgs),
    /// Print the balance of an account, in wei.
    Balance(BalanceArgs),
    /// Print the nonce of an account: how many transactions it has sent.
    Nonce(AccountArgs),
    /// Print the code of a contract.
    Code(AccountArgs),
    /// Print storage slots of a contract; with --proof an account and its slots, proved.
    Storage(StorageArgs),
    /// Print the chain's id, the endpoint's client, and its newest block.
    Chain(ChainArgs),
    /// Print the price of gas, in wei.
    GasPrice(GasPriceArgs),
    /// Call any method of JSON-RPC, and print the result.
    Rpc(RpcArgs),
    /// Encode and decode by the contract ABI; no endpoint is asked.
    Abi(AbiArgs),
}

/// Runs a command.
///
/// # Errors
/// If the arguments are wrong, the endpoint does not answer, or its answer is an error;
/// [`exit_status`] tells the first from the others.
pub fn run(command: &Command) -> anyhow::Result<Output> {
    match command {
        Command::Call(args) => call::call(args),
        Command::Estimate(args) => call::estimate(args),
        Command::Send(args) => send::send(args),
        Command::Block(args) => reads::block(args),
        Command::Tx(args) => reads::tx(args),
        Command::Receipt(args) => reads::receipt(args),
        Command::Logs(args) => logs::logs(args),
        Command::Balance(args) => reads::balance(args),
        Command::Nonce(args) => reads::nonce(args),
        Command::Code(args) => reads::code(args),
        Command::Storage(args) => storage::storage(args),
        Command::Chain(args) => reads::chain(args),
        Command::GasPrice(args) => reads::gas_price(args),
        Command::Rpc(args) => reads::rpc(args),
        Command::Abi(args) => abi::run(args),
    }
}
