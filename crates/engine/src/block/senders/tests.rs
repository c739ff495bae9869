use super::*;
use crate::samples::{COUNTER, engine, sender, spoilt};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

#[test]
fn whoever_asks_in_whatever_order_is_told_what_the_signatures_say() {
    let engine = engine();
    let mut random = StdRng::seed_from_u64(testing::seed());
    for _ in 0..20 {
        let count = random.random_range(1..40);
        let mut transactions: Vec<_> =
            (0..count).map(|nonce| sender().call(nonce, COUNTER, [])).collect();
        let wrong = random.random_bool(0.5).then(|| random.random_range(0..count as usize));
        if let Some(index) = wrong {
            transactions[index] = spoilt(&transactions[index]);
        }
        let chain = engine.chain();
        let expect = |index| {
            execution::recover_signer_at(chain, 1, index, &transactions[index])
                .map(|signer| signer.address)
        };
        let threads = random.random_range(1..5);
        let pool = ThreadPool::start(threads, "test", || ());
        let recovery = BlockSenders::new(chain, 1, &transactions);
        let helping = if random.random_bool(0.8) { threads } else { 0 };
        let recover_ahead = || recovery.recover_ahead();
        pool::scope(|scope| {
            scope.ask(&pool, helping, &recover_ahead);
            let _stopping = recovery.stopping();
            for _ in 0..count {
                let index = random.random_range(0..transactions.len());
                let asked: &dyn Senders = match random.random_bool(0.5) {
                    true => &recovery,
                    false => &SendersAhead(&recovery),
                };
                assert_eq!(asked.sender(index), expect(index));
            }
        });
        let all = recovery.signers().map(|signers| signers.len());
        let slow = execution::recover_senders_at(chain, 1, &transactions);
        assert_eq!(all, slow.map(|senders| senders.len()));
        assert_eq!(all.is_err(), wrong.is_some());
    }
}
