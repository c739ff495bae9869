use super::*;
use alloy_rpc_types_engine::{
    ExecutionPayloadV1, ExecutionPayloadV2, ExecutionPayloadV3, ExecutionPayloadV4,
};

fn first() -> ExecutionPayloadV1 {
    ExecutionPayloadV1 {
        parent_hash: B256::repeat_byte(1),
        fee_recipient: Default::default(),
        state_root: B256::repeat_byte(2),
        receipts_root: B256::repeat_byte(3),
        logs_bloom: Default::default(),
        prev_randao: B256::repeat_byte(4),
        block_number: 5,
        gas_limit: 60_000_000,
        gas_used: 21_000,
        timestamp: 1_700_000_000,
        extra_data: Bytes::from_static(b"extra"),
        base_fee_per_gas: alloy_primitives::U256::from(7),
        block_hash: B256::repeat_byte(6),
        transactions: vec![Bytes::from_static(&[2, 1, 0])],
    }
}

/// A payload of each structure, and what is beside it.
fn calls() -> [(u8, NewPayload); 5] {
    let second = ExecutionPayloadV2 { payload_inner: first(), withdrawals: Vec::new() };
    let third = ExecutionPayloadV3 {
        payload_inner: second.clone(),
        blob_gas_used: 1 << 17,
        excess_blob_gas: 0,
    };
    let fourth = ExecutionPayloadV4 {
        payload_inner: third.clone(),
        block_access_list: Bytes::from_static(&[0xc0]),
        slot_number: 9,
    };
    let cancun = CancunPayloadFields::new(B256::repeat_byte(7), vec![B256::repeat_byte(8)]);
    let requests = Requests::from_requests([Bytes::from_static(&[0, 1]), [1, 2].into()]);
    let prague = ExecutionPayloadSidecar::v4(cancun.clone(), PraguePayloadFields::new(requests));
    let cancun = ExecutionPayloadSidecar::v3(cancun);
    let none = ExecutionPayloadSidecar::none();
    let call = |payload: ExecutionPayload, sidecar: &ExecutionPayloadSidecar| {
        let call = NewPayload::new(payload, sidecar).expect("nothing is missing");
        let again = NewPayload::new(call.payload.clone(), &call.sidecar());
        assert_eq!(again.expect("nothing is missing"), call);
        call
    };
    [
        (1, call(ExecutionPayload::V1(first()), &none)),
        (2, call(ExecutionPayload::V2(second), &none)),
        (3, call(ExecutionPayload::V3(third.clone()), &cancun)),
        (4, call(ExecutionPayload::V3(third), &prague)),
        (5, call(ExecutionPayload::V4(fourth), &prague)),
    ]
}

#[test]
fn each_version_is_read_from_the_json_that_it_is_written_to() {
    for (version, call) in calls() {
        let json = call.to_json().unwrap();
        assert_eq!(NewPayload::from_json(version, json.get()).unwrap(), call, "{version}");
        for other in (1..=5).filter(|other| *other != version) {
            // The second version takes both structures.
            let is_taken = (version, other) == (1, 2);
            assert_eq!(NewPayload::from_json(other, json.get()).is_ok(), is_taken, "{json}");
        }
    }
}

#[test]
fn each_version_is_an_envelope_of_its_forks() {
    for (version, call) in calls() {
        let body = call.to_ssz().unwrap().into();
        for fork in call.forks() {
            let envelope = crate::ExecutionPayloadEnvelope::decode(*fork, &body).unwrap();
            assert_eq!(envelope.payload, call.payload);
            assert_eq!(envelope.parent_beacon_block_root, call.parent_beacon_block_root);
            assert_eq!(envelope.execution_requests, call.execution_requests);
            assert_eq!(crate::EngineMethod::NewPayload.version(*fork), version);
        }
    }
}

#[test]
fn a_payload_without_its_sidecar_is_refused() {
    let [.., (_, cancun), (_, prague), (_, amsterdam)] = calls();
    let none = ExecutionPayloadSidecar::none();
    for call in [&cancun, &prague] {
        let error = NewPayload::new(call.payload.clone(), &none).unwrap_err();
        assert!(error.to_string().contains("parent beacon block root"), "{error}");
    }
    let error = NewPayload::new(amsterdam.payload, &cancun.sidecar()).unwrap_err();
    assert!(error.to_string().contains("requests"), "{error}");
}
