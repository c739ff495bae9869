# The genesis file that hive gives, with the chain's rules that hive gives as variables (HIVE_*),
# in geth's form. A variable that is not set, or empty, leaves its member out.

def set(name): env[name] | select(. != null and . != "");
def number(name): set(name) | tonumber;
def member(key; name): { (key): number(name) };

def blob_schedule: [
    ["cancun", 3, 6, 3338477],
    ["prague", 6, 9, 5007716],
    ["osaka", 6, 9, 5007716],
    ["bpo1", 10, 15, 8346193],
    ["bpo2", 14, 21, 11684671],
    ["bpo3", 9, 14, 8832827],
    ["bpo4", 9, 14, 8832827],
    ["bpo5", 9, 14, 8832827],
    ["amsterdam", 14, 21, 11684671]
  ]
  | map(
      . as [$fork, $target, $max, $fraction]
      | "HIVE_\($fork | ascii_upcase)_" as $prefix
      | { ($fork): {
          target: (number($prefix + "BLOB_TARGET") // $target),
          max: (number($prefix + "BLOB_MAX") // $max),
          baseFeeUpdateFraction: (number($prefix + "BLOB_BASE_FEE_UPDATE_FRACTION") // $fraction)
        } }
    )
  | add;

def rules: [
    { chainId: (number("HIVE_CHAIN_ID") // 1) },
    member("homesteadBlock"; "HIVE_FORK_HOMESTEAD"),
    member("daoForkBlock"; "HIVE_FORK_DAO_BLOCK"),
    { daoForkSupport: (set("HIVE_FORK_DAO_VOTE") == "1") },
    member("eip150Block"; "HIVE_FORK_TANGERINE"),
    member("eip155Block"; "HIVE_FORK_SPURIOUS"),
    member("eip158Block"; "HIVE_FORK_SPURIOUS"),
    member("byzantiumBlock"; "HIVE_FORK_BYZANTIUM"),
    member("constantinopleBlock"; "HIVE_FORK_CONSTANTINOPLE"),
    member("petersburgBlock"; "HIVE_FORK_PETERSBURG"),
    member("istanbulBlock"; "HIVE_FORK_ISTANBUL"),
    # hive spells this one in two ways.
    member("muirGlacierBlock"; "HIVE_FORK_MUIR_GLACIER", "HIVE_FORK_MUIRGLACIER"),
    member("berlinBlock"; "HIVE_FORK_BERLIN"),
    member("londonBlock"; "HIVE_FORK_LONDON"),
    member("arrowGlacierBlock"; "HIVE_FORK_ARROW_GLACIER"),
    member("grayGlacierBlock"; "HIVE_FORK_GRAY_GLACIER"),
    member("mergeNetsplitBlock"; "HIVE_MERGE_BLOCK_ID"),
    member("terminalTotalDifficulty"; "HIVE_TERMINAL_TOTAL_DIFFICULTY"),
    # Blocks of tests do not add up to the difficulty at which proof of work ends.
    { terminalTotalDifficultyPassed: true },
    member("shanghaiTime"; "HIVE_SHANGHAI_TIMESTAMP"),
    member("cancunTime"; "HIVE_CANCUN_TIMESTAMP"),
    member("pragueTime"; "HIVE_PRAGUE_TIMESTAMP"),
    member("osakaTime"; "HIVE_OSAKA_TIMESTAMP"),
    member("bpo1Time"; "HIVE_BPO1_TIMESTAMP"),
    member("bpo2Time"; "HIVE_BPO2_TIMESTAMP"),
    member("bpo3Time"; "HIVE_BPO3_TIMESTAMP"),
    member("bpo4Time"; "HIVE_BPO4_TIMESTAMP"),
    member("bpo5Time"; "HIVE_BPO5_TIMESTAMP"),
    member("amsterdamTime"; "HIVE_AMSTERDAM_TIMESTAMP"),
    { blobSchedule: blob_schedule },
    { depositContractAddress:
        (set("HIVE_DEPOSIT_CONTRACT_ADDRESS") // "0x00000000219ab540356cbb839cbe05303d7705fa") }
  ]
  | add;

.config = rules
