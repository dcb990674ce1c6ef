//! An enum of a hundred outputs: it works, and compiles in about a second.

use futures::executor::block_on;
use futures::stream;
use side_output::prelude::*;

#[splitter]
enum Many {
    V00(u64),
    V01(u16),
    V02(u32),
    V03(Box<u8>),
    V04(u64),
    V05(u16),
    V06(u32),
    V07(Box<u8>),
    V08(u64),
    V09(u16),
    V10(u32),
    V11(Box<u8>),
    V12(u64),
    V13(u16),
    V14(u32),
    V15(Box<u8>),
    V16(u64),
    V17(u16),
    V18(u32),
    V19(Box<u8>),
    V20(u64),
    V21(u16),
    V22(u32),
    V23(Box<u8>),
    V24(u64),
    V25(u16),
    V26(u32),
    V27(Box<u8>),
    V28(u64),
    V29(u16),
    V30(u32),
    V31(Box<u8>),
    V32(u64),
    V33(u16),
    V34(u32),
    V35(Box<u8>),
    V36(u64),
    V37(u16),
    V38(u32),
    V39(Box<u8>),
    V40(u64),
    V41(u16),
    V42(u32),
    V43(Box<u8>),
    V44(u64),
    V45(u16),
    V46(u32),
    V47(Box<u8>),
    V48(u64),
    V49(u16),
    V50(u32),
    V51(Box<u8>),
    V52(u64),
    V53(u16),
    V54(u32),
    V55(Box<u8>),
    V56(u64),
    V57(u16),
    V58(u32),
    V59(Box<u8>),
    V60(u64),
    V61(u16),
    V62(u32),
    V63(Box<u8>),
    V64(u64),
    V65(u16),
    V66(u32),
    V67(Box<u8>),
    V68(u64),
    V69(u16),
    V70(u32),
    V71(Box<u8>),
    V72(u64),
    V73(u16),
    V74(u32),
    V75(Box<u8>),
    V76(u64),
    V77(u16),
    V78(u32),
    V79(Box<u8>),
    V80(u64),
    V81(u16),
    V82(u32),
    V83(Box<u8>),
    V84(u64),
    V85(u16),
    V86(u32),
    V87(Box<u8>),
    V88(u64),
    V89(u16),
    V90(u32),
    V91(Box<u8>),
    V92(u64),
    V93(u16),
    V94(u32),
    V95(Box<u8>),
    V96(u64),
    V97(u16),
    V98(u32),
    V99(Box<u8>),
}

#[splitter(Many)]
fn split(n: u8) -> Many {
    match n {
        0 => Many::V00(n.into()),
        1 => Many::V01(n.into()),
        2 => Many::V02(n.into()),
        3 => Many::V03(n.into()),
        4 => Many::V04(n.into()),
        5 => Many::V05(n.into()),
        6 => Many::V06(n.into()),
        7 => Many::V07(n.into()),
        8 => Many::V08(n.into()),
        9 => Many::V09(n.into()),
        10 => Many::V10(n.into()),
        11 => Many::V11(n.into()),
        12 => Many::V12(n.into()),
        13 => Many::V13(n.into()),
        14 => Many::V14(n.into()),
        15 => Many::V15(n.into()),
        16 => Many::V16(n.into()),
        17 => Many::V17(n.into()),
        18 => Many::V18(n.into()),
        19 => Many::V19(n.into()),
        20 => Many::V20(n.into()),
        21 => Many::V21(n.into()),
        22 => Many::V22(n.into()),
        23 => Many::V23(n.into()),
        24 => Many::V24(n.into()),
        25 => Many::V25(n.into()),
        26 => Many::V26(n.into()),
        27 => Many::V27(n.into()),
        28 => Many::V28(n.into()),
        29 => Many::V29(n.into()),
        30 => Many::V30(n.into()),
        31 => Many::V31(n.into()),
        32 => Many::V32(n.into()),
        33 => Many::V33(n.into()),
        34 => Many::V34(n.into()),
        35 => Many::V35(n.into()),
        36 => Many::V36(n.into()),
        37 => Many::V37(n.into()),
        38 => Many::V38(n.into()),
        39 => Many::V39(n.into()),
        40 => Many::V40(n.into()),
        41 => Many::V41(n.into()),
        42 => Many::V42(n.into()),
        43 => Many::V43(n.into()),
        44 => Many::V44(n.into()),
        45 => Many::V45(n.into()),
        46 => Many::V46(n.into()),
        47 => Many::V47(n.into()),
        48 => Many::V48(n.into()),
        49 => Many::V49(n.into()),
        50 => Many::V50(n.into()),
        51 => Many::V51(n.into()),
        52 => Many::V52(n.into()),
        53 => Many::V53(n.into()),
        54 => Many::V54(n.into()),
        55 => Many::V55(n.into()),
        56 => Many::V56(n.into()),
        57 => Many::V57(n.into()),
        58 => Many::V58(n.into()),
        59 => Many::V59(n.into()),
        60 => Many::V60(n.into()),
        61 => Many::V61(n.into()),
        62 => Many::V62(n.into()),
        63 => Many::V63(n.into()),
        64 => Many::V64(n.into()),
        65 => Many::V65(n.into()),
        66 => Many::V66(n.into()),
        67 => Many::V67(n.into()),
        68 => Many::V68(n.into()),
        69 => Many::V69(n.into()),
        70 => Many::V70(n.into()),
        71 => Many::V71(n.into()),
        72 => Many::V72(n.into()),
        73 => Many::V73(n.into()),
        74 => Many::V74(n.into()),
        75 => Many::V75(n.into()),
        76 => Many::V76(n.into()),
        77 => Many::V77(n.into()),
        78 => Many::V78(n.into()),
        79 => Many::V79(n.into()),
        80 => Many::V80(n.into()),
        81 => Many::V81(n.into()),
        82 => Many::V82(n.into()),
        83 => Many::V83(n.into()),
        84 => Many::V84(n.into()),
        85 => Many::V85(n.into()),
        86 => Many::V86(n.into()),
        87 => Many::V87(n.into()),
        88 => Many::V88(n.into()),
        89 => Many::V89(n.into()),
        90 => Many::V90(n.into()),
        91 => Many::V91(n.into()),
        92 => Many::V92(n.into()),
        93 => Many::V93(n.into()),
        94 => Many::V94(n.into()),
        95 => Many::V95(n.into()),
        96 => Many::V96(n.into()),
        97 => Many::V97(n.into()),
        98 => Many::V98(n.into()),
        _ => Many::V99(n.into()),
    }
}

#[test]
fn a_hundred_outputs_can_be_wired() {
    let ledger = block_on(
        stream::iter(0..100)
            .split_with(split)
            .wire()
            .v00(discard())
            .v01(discard())
            .v02(discard())
            .v03(discard())
            .v04(discard())
            .v05(discard())
            .v06(discard())
            .v07(discard())
            .v08(discard())
            .v09(discard())
            .v10(discard())
            .v11(discard())
            .v12(discard())
            .v13(discard())
            .v14(discard())
            .v15(discard())
            .v16(discard())
            .v17(discard())
            .v18(discard())
            .v19(discard())
            .v20(discard())
            .v21(discard())
            .v22(discard())
            .v23(discard())
            .v24(discard())
            .v25(discard())
            .v26(discard())
            .v27(discard())
            .v28(discard())
            .v29(discard())
            .v30(discard())
            .v31(discard())
            .v32(discard())
            .v33(discard())
            .v34(discard())
            .v35(discard())
            .v36(discard())
            .v37(discard())
            .v38(discard())
            .v39(discard())
            .v40(discard())
            .v41(discard())
            .v42(discard())
            .v43(discard())
            .v44(discard())
            .v45(discard())
            .v46(discard())
            .v47(discard())
            .v48(discard())
            .v49(discard())
            .v50(discard())
            .v51(discard())
            .v52(discard())
            .v53(discard())
            .v54(discard())
            .v55(discard())
            .v56(discard())
            .v57(discard())
            .v58(discard())
            .v59(discard())
            .v60(discard())
            .v61(discard())
            .v62(discard())
            .v63(discard())
            .v64(discard())
            .v65(discard())
            .v66(discard())
            .v67(discard())
            .v68(discard())
            .v69(discard())
            .v70(discard())
            .v71(discard())
            .v72(discard())
            .v73(discard())
            .v74(discard())
            .v75(discard())
            .v76(discard())
            .v77(discard())
            .v78(discard())
            .v79(discard())
            .v80(discard())
            .v81(discard())
            .v82(discard())
            .v83(discard())
            .v84(discard())
            .v85(discard())
            .v86(discard())
            .v87(discard())
            .v88(discard())
            .v89(discard())
            .v90(discard())
            .v91(discard())
            .v92(discard())
            .v93(discard())
            .v94(discard())
            .v95(discard())
            .v96(discard())
            .v97(discard())
            .v98(discard())
            .v99(discard())
            .run(),
    )
    .unwrap();
    assert!(ledger.is_balanced());
    assert_eq!(ledger.outputs.len(), 100);
    assert!(ledger.outputs.iter().all(|output| output.discarded == 1));
    assert_eq!("v42".parse(), Ok(ManyTag::V42));
}

#[test]
fn a_hundred_outputs_can_be_read() {
    let mut streams = stream::iter(0..100).split_with(split);
    let last: DataStream<Box<u8>> = streams.get_side_output(Many::V99_TAG);
    drop(streams.boxed());
    let mut got = Vec::new();
    block_on(last.for_each(|n| got.push(n))).unwrap();
    assert_eq!(got, [Box::new(99)]);
}
