//! The outside values are of eth-remerkleable 0.1.31, `hash_tree_root` of the type named.

use super::*;
use alloy_primitives::hex;

/// The chunks 1, 2 … as little-endian numbers.
fn numbers(count: usize) -> Vec<B256> {
    (1..=count as u64).map(u64_root).collect()
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|index| (7 * index + 3) as u8).collect()
}

fn check<const N: usize>(root: impl Fn(usize) -> B256, cases: [(usize, &str); N]) {
    for (size, expected) in cases {
        assert_eq!(hex::encode(root(size)), expected, "size {size}");
    }
}

#[test]
fn a_progressive_list_of_numbers_has_the_published_root() {
    // ProgressiveList[uint256] of 1 to n.
    check(
        |count| progressive_list_root(&numbers(count)),
        [
            (0, "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"),
            (1, "905efb51c2764c2c7a4efb0548e372569df06db82115c3b1896c186632f3fe5b"),
            (2, "0bf6848f5c62ed7241d5461b8b28ba0a433f49a205643b1460748b1441342f73"),
            (5, "472844f2f18e5c727d805241ad2f8f4f1d485cf8310602d9cf5dcf21ef8254dc"),
            (6, "76d03915aa777c431f6534cbd136b8f185b5df884546f52a8caa5db69ab49845"),
            (21, "47e0ab688eae3c1dbbb9623fadc55045accae121d492112724965f927f5d47ab"),
            (22, "4eb1861dc5959f6495a5daa997dcab85fcfeae76b0596aa32048be2cc221ded4"),
            (85, "ce4cd90414765a664070fdee5136e5dfb1eb16632f2a048b6afd5ec1e76965e1"),
            (86, "6455343caa59ff27ba38e2fa12f5107f3a9ecd1849ba4028d11daadb3b01649f"),
            (341, "41ad9d13190935e2ba0c2787bb25415a9b58095ce8e0e33e342bdd46a0cd391b"),
            (342, "7c04558765d6f2929cac684f3d7a078ba3ff35e2c6d730df8cfcd7c56fee84ce"),
        ],
    );
}

#[test]
fn a_progressive_byte_list_has_the_published_root() {
    // ProgressiveByteList.
    check(
        |length| progressive_byte_list_root(&bytes(length)),
        [
            (0, "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"),
            (1, "8aa673f3bfc7dae693c4084d85ee7c1fd4d37b8916fd393a461cd0a85be19ab3"),
            (31, "d6a0f3fd60aab4605c8230de869270d7b6b4b37c0b86c5a83afe579ff0c148af"),
            (32, "c7270347f7a27f1d5c5c4bb174d36f771fafe10529f8c2971aab3c99a695ada6"),
            (33, "5572e016e4f1084df452a8ac0e13859fc64c50487a0795ebede0ef1d5f81e3c6"),
            (160, "833fc896eaa69ad3ae6c3b13291e1c1aef5d84b724c832a71b4d975ce3a7dd9e"),
            (161, "4293e00ec78e044ab372f85908396a82d1b56a7e150aa3caadca1d4a9f10efca"),
            (672, "fc6762f0c1d7e1a844f450d77db0cb4a2820cab5d2bac2c2cedd446d36ad91f8"),
            (673, "8bf7088b88c98f9f74b64c60ceb7dad98bb889291b72f973db3f9c635f3ba38e"),
            (2720, "840a42e4176296e6068b196d7d6d45d6d40dc26d98177494d635ca03bc260884"),
            (2721, "270532e85f9a7dd9aad1988525053395a22ed3a5c079dda43366a278f2bbb083"),
        ],
    );
}

#[test]
fn a_progressive_container_has_the_published_root() {
    // ProgressiveContainer(active_fields=[1] * n) of uint64 fields 1 to n.
    check(
        |count| progressive_container_root(&numbers(count)),
        [
            (1, "905efb51c2764c2c7a4efb0548e372569df06db82115c3b1896c186632f3fe5b"),
            (2, "7b2da961649d679744b7a9f823e4a4d2b5ec166f568e4483678bce1f9ef5ccd9"),
            (5, "5a167eafdb77037933df6b87009c5d116ef0b6e6800d37b2e70693875b64318d"),
            (6, "5b3a785823a6af49e9add04543130b578f8ad774048632aec9d765f0eb949eab"),
            (19, "c6de7b2d3af2d92e3136b2228b93460506fab2907e467eff356c1dae7944d47b"),
            (22, "c51d4cb8ad1c3a918554f52d80175ac494b487a06c3fa4dfd0f1f55b3fe9d3c5"),
        ],
    );
}

#[test]
fn a_container_has_the_published_root() {
    // Container of uint64 fields 1 to n.
    check(
        |count| merkleize(&numbers(count), count),
        [
            (1, "0100000000000000000000000000000000000000000000000000000000000000"),
            (2, "ff55c97976a840b4ced964ed49e3794594ba3f675238b5fd25d282b60f70a194"),
            (5, "b26528272e5e43113dbd86763ea69f188495bec3a75e185b327ad84ba0a9c881"),
            (6, "fc9a61c0f0a5063fc7c9c5b15539fdbc090e066a1532e4d2a2a726fbaa722ba1"),
            (8, "99cb728885028dc2c35af59794139055007536d3ed8efb214db6b8798fcc8480"),
        ],
    );
}

#[test]
fn a_byte_vector_has_the_published_root() {
    // ByteVector[n].
    check(
        |length| byte_vector_root(&bytes(length)),
        [
            (20, "030a11181f262d343b424950575e656c737a8188000000000000000000000000"),
            (48, "0b2d2c3f86eef28bf742b7e24f719a43612bea7ebce7d3e2daf75f8c622cdfa3"),
            (65, "2e69be94132f16b11fae764b720b6d8ed34edcba32dd93bbd193eb750b62d92a"),
            (96, "51254c97331a0cdc68cede0068bba4f107edc4947cb87dd979d20b53dddeda70"),
            (256, "a08a38798254b8fd0afa8787050a9e131fb7b088b1027d6ca783215650be4bca"),
        ],
    );
}

#[test]
fn a_plain_list_has_the_published_root() {
    // List[uint256, limit] of 1 to n.
    let list = |limit| move |count| mix_in_length(&merkleize(&numbers(count), limit), count);
    let empty = "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b";
    check(list(1), [(0, empty)]);
    check(list(1), [(1, "56d8a66fbae0300efba7ec2c531973aaae22e7a2ed6ded081b5b32d07a32780a")]);
    check(list(4), [(3, "48e0187123ec029d586ac948fc8081f1e6d11632e336b41983c90685040fe63d")]);
    check(list(1000), [(5, "cc77fafebb9f2d4915a413673a5a51126922d47981d9d1055865447085010556")]);
    check(
        list(1 << 25),
        [
            (0, "94cf9be2024145c5ad7c8d893fc2292e4ebe207ea42350fc7cf3e8798ac34cd9"),
            (9, "d0b46a275376740fff1ae144731dcb10b56c1832204ace4b4033646d271bb0db"),
        ],
    );
}

#[test]
fn a_byte_list_has_the_published_root() {
    // ByteList[limit].
    let list = |limit| move |length| byte_list_root(&bytes(length), limit);
    check(
        list(32),
        [
            (0, "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"),
            (21, "ac243e2c78b38c665de11b16bfab8ef12e18843667c4a9f638aeab0dbafbc466"),
            (32, "9f985a74c8b780be5dc56a55ce50ff1e833a969cdf3f27a61a398c8bd942d9bb"),
        ],
    );
    check(list(64), [(33, "9f647dc9ffdae42684131a98cab4f612cd491d5108bf702ca0d37d148e6abccf")]);
    check(
        list(1 << 30),
        [(100, "7719bda9c4daa1592d199c3f03c153d5323ec03d4598731b44dd9bcfa3e5dfdd")],
    );
}

#[test]
fn a_byte_list_over_its_limit_has_a_root_of_a_larger_tree() {
    assert_eq!(byte_list_root(&bytes(33), 32), byte_list_root(&bytes(33), 64));
}

/// The specification's recursion, with all zero leaves in place.
fn merkleize_plainly(chunks: &[B256], leaves: usize) -> B256 {
    if leaves <= 1 {
        return chunks.first().copied().unwrap_or_default();
    }
    let half = leaves.next_power_of_two() / 2;
    let (left, right) = chunks.split_at(half.min(chunks.len()));
    hash_pair(&merkleize_plainly(left, half), &merkleize_plainly(right, half))
}

fn merkleize_progressive_plainly(chunks: &[B256], leaves: usize) -> B256 {
    if chunks.is_empty() {
        return B256::ZERO;
    }
    let (first, rest) = chunks.split_at(leaves.min(chunks.len()));
    let later = merkleize_progressive_plainly(rest, 4 * leaves);
    hash_pair(&merkleize_plainly(first, leaves), &later)
}

#[test]
fn trees_agree_with_the_recursive_definition() {
    for count in 0..100 {
        let chunks = numbers(count);
        let progressive = merkleize_progressive_plainly(&chunks, 1);
        assert_eq!(merkleize_progressive(&chunks), progressive, "{count} chunks");
        for leaves in [count, count + 1, 2 * count, 128] {
            let plain = merkleize_plainly(&chunks, leaves);
            assert_eq!(merkleize(&chunks, leaves), plain, "{count} chunks in {leaves} leaves");
        }
    }
}

#[test]
fn an_item_of_one_field_is_its_own_root() {
    assert_eq!(item_root(&B256::repeat_byte(7)), B256::repeat_byte(7));
}
