//! Made by `cargo run --release -p proofkeep-filecoin --features published --example counts`; see [`crate::counts`].

use crate::counts::{Counts, Sizes};

/// The circuits of every registered sector size.
#[rustfmt::skip]
pub(crate) const COUNTED: &[Sizes] = &[
    // 2KiB
    Sizes {
        size: 2048,
        porep: Counts { constraints: 1344246, inputs: 22, others: 1343122, in_a: 1337699, in_b: 343006, terms: 7469252 },
        porep_more: Counts { constraints: 1343675, inputs: 18, others: 1342551, in_a: 1337209, in_b: 342516, terms: 7465401 },
        update: Some(Counts { constraints: 1705039, inputs: 5, others: 1703569, in_a: 1697189, in_b: 444404, terms: 9354073 }),
        window: Counts { constraints: 21866, inputs: 23, others: 22128, in_a: 16770, in_b: 16029, terms: 199948 },
        winning: Counts { constraints: 90750, inputs: 133, others: 91674, in_a: 69300, in_b: 66793, terms: 827574 },
    },
    // 4KiB
    Sizes {
        size: 4096,
        porep: Counts { constraints: 1394652, inputs: 22, others: 1393497, in_a: 1386824, in_b: 358265, terms: 7761026 },
        porep_more: Counts { constraints: 1394081, inputs: 18, others: 1392926, in_a: 1386334, in_b: 357775, terms: 7757175 },
        update: Some(Counts { constraints: 2165109, inputs: 5, others: 2163189, in_a: 2155229, in_b: 564064, terms: 11875213 }),
        window: Counts { constraints: 28146, inputs: 23, others: 28428, in_a: 21510, in_b: 20729, terms: 256588 },
        winning: Counts { constraints: 111474, inputs: 133, others: 112464, in_a: 84942, in_b: 82303, terms: 1014486 },
    },
    // 16KiB
    Sizes {
        size: 16384,
        porep: Counts { constraints: 1488872, inputs: 22, others: 1487719, in_a: 1480210, in_b: 383727, terms: 8286318 },
        porep_more: Counts { constraints: 1488301, inputs: 18, others: 1487148, in_a: 1479720, in_b: 383237, terms: 8282467 },
        update: Some(Counts { constraints: 6300021, inputs: 5, others: 6293944, in_a: 6284882, in_b: 1613423, terms: 34347996 }),
        window: Counts { constraints: 32466, inputs: 23, others: 32868, in_a: 24910, in_b: 23809, terms: 297048 },
        winning: Counts { constraints: 125730, inputs: 133, others: 127116, in_a: 96162, in_b: 92467, terms: 1148004 },
    },
    // 32KiB
    Sizes {
        size: 32768,
        porep: Counts { constraints: 1539278, inputs: 22, others: 1538094, in_a: 1529335, in_b: 398986, terms: 8578092 },
        porep_more: Counts { constraints: 1538707, inputs: 18, others: 1537523, in_a: 1528845, in_b: 398496, terms: 8574241 },
        update: Some(Counts { constraints: 6760091, inputs: 5, others: 6753564, in_a: 6742922, in_b: 1733083, terms: 36869136 }),
        window: Counts { constraints: 38746, inputs: 23, others: 39168, in_a: 29650, in_b: 28509, terms: 353688 },
        winning: Counts { constraints: 146454, inputs: 133, others: 147906, in_a: 111804, in_b: 107977, terms: 1334916 },
    },
    // 8MiB
    Sizes {
        size: 8388608,
        porep: Counts { constraints: 1922750, inputs: 22, others: 1921510, in_a: 1907743, in_b: 505890, terms: 10737516 },
        porep_more: Counts { constraints: 1922179, inputs: 18, others: 1920939, in_a: 1907253, in_b: 505400, terms: 10733665 },
        update: Some(Counts { constraints: 10007503, inputs: 5, others: 9998039, in_a: 9981015, in_b: 2567922, terms: 54602189 }),
        window: Counts { constraints: 64266, inputs: 23, others: 65088, in_a: 49330, in_b: 47149, terms: 588348 },
        winning: Counts { constraints: 230670, inputs: 133, others: 233442, in_a: 176748, in_b: 169489, terms: 2109294 },
    },
    // 16MiB
    Sizes {
        size: 16777216,
        porep: Counts { constraints: 1973156, inputs: 22, others: 1971885, in_a: 1956868, in_b: 521149, terms: 11029290 },
        porep_more: Counts { constraints: 1972585, inputs: 18, others: 1971314, in_a: 1956378, in_b: 520659, terms: 11025439 },
        update: Some(Counts { constraints: 10467573, inputs: 5, others: 10457659, in_a: 10439055, in_b: 2687582, terms: 57123329 }),
        window: Counts { constraints: 70546, inputs: 23, others: 71388, in_a: 54070, in_b: 51849, terms: 644988 },
        winning: Counts { constraints: 251394, inputs: 133, others: 254232, in_a: 192390, in_b: 184999, terms: 2296206 },
    },
    // 512MiB
    Sizes {
        size: 536870912,
        porep: Counts { constraints: 2212002, inputs: 22, others: 2210704, in_a: 2192765, in_b: 587332, terms: 12371648 },
        porep_more: Counts { constraints: 2211431, inputs: 18, others: 2210133, in_a: 2192275, in_b: 586842, terms: 12367797 },
        update: Some(Counts { constraints: 57450479, inputs: 5, others: 57401314, in_a: 57212317, in_b: 14916880, terms: 314834519 }),
        window: Counts { constraints: 85466, inputs: 23, others: 86568, in_a: 65610, in_b: 62709, terms: 782548 },
        winning: Counts { constraints: 300630, inputs: 133, others: 304326, in_a: 230472, in_b: 220837, terms: 2750154 },
    },
    // 1GiB
    Sizes {
        size: 1073741824,
        porep: Counts { constraints: 2262408, inputs: 22, others: 2261079, in_a: 2241890, in_b: 602591, terms: 12663422 },
        porep_more: Counts { constraints: 2261837, inputs: 18, others: 2260508, in_a: 2241400, in_b: 602101, terms: 12659571 },
        update: None,
        window: Counts { constraints: 91746, inputs: 23, others: 92868, in_a: 70350, in_b: 67409, terms: 839188 },
        winning: Counts { constraints: 321354, inputs: 133, others: 325116, in_a: 246114, in_b: 236347, terms: 2937066 },
    },
    // 32GiB
    Sizes {
        size: 34359738368,
        porep: Counts { constraints: 7238236, inputs: 22, others: 7232200, in_a: 7208979, in_b: 1840034, terms: 40136335 },
        porep_more: Counts { constraints: 7237665, inputs: 18, others: 7231629, in_a: 7208489, in_b: 1839544, terms: 40132484 },
        update: Some(Counts { constraints: 81049499, inputs: 5, others: 80978488, in_a: 80743581, in_b: 20983608, terms: 443680527 }),
        window: Counts { constraints: 125279217, inputs: 25840, others: 126902376, in_a: 96179805, in_b: 91925767, terms: 1147190526 },
        winning: Counts { constraints: 370590, inputs: 133, others: 375210, in_a: 284196, in_b: 272185, terms: 3391014 },
    },
    // 64GiB
    Sizes {
        size: 68719476736,
        porep: Counts { constraints: 7288642, inputs: 22, others: 7282575, in_a: 7258104, in_b: 1855293, terms: 40428109 },
        porep_more: Counts { constraints: 7288071, inputs: 18, others: 7282004, in_a: 7257614, in_b: 1854803, terms: 40424258 },
        update: Some(Counts { constraints: 85006101, inputs: 5, others: 84931220, in_a: 84682725, in_b: 22012684, terms: 465362331 }),
        window: Counts { constraints: 129887900, inputs: 25301, others: 131500200, in_a: 99624500, in_b: 95413201, terms: 1188396200 },
        winning: Counts { constraints: 391314, inputs: 133, others: 396000, in_a: 299838, in_b: 287695, terms: 3577926 },
    },
];
