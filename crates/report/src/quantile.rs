//! Quantiles of the normal and of Student's t distribution.

use std::f64::consts::FRAC_2_PI;

/// Polynomials of Wichura's AS 241 (PPND16), lowest power first: numerator and denominator for the
/// centre, and for the near and the far tail.
const CENTRE: ([f64; 8], [f64; 8]) = (
    [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ],
    [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ],
);
const NEAR_TAIL: ([f64; 8], [f64; 8]) = (
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
);
const FAR_TAIL: ([f64; 8], [f64; 8]) = (
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288e-7,
    ],
    [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
);

/// The standard normal quantile: the z below which a share `p` of the distribution lies, to about
/// 16 digits (Wichura 1988, algorithm AS 241). NaN unless 0 < p < 1.
pub fn normal(p: f64) -> f64 {
    if !(p > 0.0 && p < 1.0) {
        return f64::NAN;
    }
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        return q * ratio(&CENTRE, 0.180_625 - q * q);
    }
    let r = (-p.min(1.0 - p).ln()).sqrt();
    let z = if r <= 5.0 {
        ratio(&NEAR_TAIL, r - 1.6)
    } else {
        ratio(&FAR_TAIL, r - 5.0)
    };
    z.copysign(q)
}

fn ratio((numerator, denominator): &([f64; 8], [f64; 8]), x: f64) -> f64 {
    let horner = |terms: &[f64; 8]| terms.iter().rev().fold(0.0, |sum, term| sum * x + term);
    horner(numerator) / horner(denominator)
}

/// The probability that Student's t with `df` degrees of freedom lies within `-t..=t`, `t >= 0`.
///
/// The finite sums of Abramowitz and Stegun 26.7.3 (odd) and 26.7.4 (even): exact but for rounding,
/// in time proportional to `df`.
pub fn t_within(t: f64, df: u32) -> f64 {
    let angle = (t / f64::from(df).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    // The powers of cos that are summed are even for even df and odd for odd df.
    let odd = df % 2 == 1;
    let mut term = if odd { cos } else { 1.0 };
    let mut sum = 0.0;
    let mut power = u32::from(odd);
    while power + 2 <= df {
        sum += term;
        power += 2;
        term *= cos * cos * f64::from(power - 1) / f64::from(power);
    }
    if odd {
        FRAC_2_PI * (angle + sin * sum)
    } else {
        sin * sum
    }
}

/// The t that `-t..=t` must reach to hold a share `confidence` of Student's t with `df` degrees of
/// freedom: 12.706 for 0.95 and 1, 2.776 for 0.95 and 4. NaN unless 0 < confidence < 1 and df > 0.
pub fn t_two_sided(confidence: f64, df: u32) -> f64 {
    if !(confidence > 0.0 && confidence < 1.0) || df == 0 {
        return f64::NAN;
    }
    // t has heavier tails than the normal, so its quantile lies above; double until enclosed.
    let mut low = normal(0.5 + confidence / 2.0);
    let mut high = low * 2.0;
    while t_within(high, df) < confidence {
        low = high;
        high *= 2.0;
    }
    while high - low > 1e-14 * high {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if t_within(middle, df) < confidence {
            low = middle
        } else {
            high = middle
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn normal_quantiles_are_the_tabulated_ones() {
        let table = [
            (0.5, 0.0),
            (0.75, 0.674_489_750_196_081_7),
            (0.9, 1.281_551_565_544_600_4),
            (0.95, 1.644_853_626_951_472_2),
            (0.975, 1.959_963_984_540_054),
            (0.995, 2.575_829_303_548_900_4),
            (0.999, 3.090_232_306_167_813),
            (0.999_999, 4.753_424_308_822_899),
        ];
        for (p, z) in table {
            assert!(
                (normal(p) - z).abs() < 1e-9,
                "normal({p}) = {}, tabulated {z}",
                normal(p)
            );
            assert!(
                (normal(1.0 - p) + z).abs() < 1e-9,
                "normal(1 - {p}) = {}",
                normal(1.0 - p)
            );
        }
        // The far tail: 1e-20 is beyond r = 5.
        assert!(
            (normal(1e-20) + 9.262_340_089_798_408).abs() < 1e-9,
            "{}",
            normal(1e-20)
        );
    }

    #[test]
    fn t_quantiles_are_the_tabulated_ones() {
        let table = [
            (0.95, 1, 12.706),
            (0.95, 2, 4.303),
            (0.95, 3, 3.182),
            (0.95, 4, 2.776),
            (0.95, 5, 2.571),
            (0.95, 9, 2.262),
            (0.95, 19, 2.093),
            (0.95, 30, 2.042),
            (0.95, 120, 1.980),
            (0.99, 1, 63.657),
            (0.99, 4, 4.604),
            (0.99, 10, 3.169),
            (0.90, 2, 2.920),
            (0.90, 7, 1.895),
        ];
        for (confidence, df, expected) in table {
            let t = t_two_sided(confidence, df);
            assert!(
                (t - expected).abs() < 6e-4,
                "t({confidence}, {df}) = {t}, tabulated {expected}"
            );
        }
    }

    #[test]
    fn impossible_shares_give_no_number() {
        for p in [0.0, 1.0, -1.0, 2.0, f64::NAN] {
            assert!(normal(p).is_nan() && t_two_sided(p, 4).is_nan(), "p = {p}");
        }
        assert!(t_two_sided(0.95, 0).is_nan());
    }

    proptest! {
        #[test]
        fn the_quantile_inverts_the_distribution(confidence in 0.01f64..0.999, df in 1u32..200) {
            let t = t_two_sided(confidence, df);
            prop_assert!((t_within(t, df) - confidence).abs() < 1e-10);
        }

        #[test]
        fn tails_get_lighter_with_more_degrees_of_freedom(confidence in 0.5f64..0.999, df in 1u32..100) {
            let (fewer, more) = (t_two_sided(confidence, df), t_two_sided(confidence, df + 1));
            prop_assert!(more < fewer, "{more} >= {fewer}");
            prop_assert!(more > normal(0.5 + confidence / 2.0));
        }
    }
}
