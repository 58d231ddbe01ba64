//! Lists of the formats for which kernels are compiled. The tables of kernels ([`kernels!`](crate::kernels)) name them.
//!
//! An entry has the cargo features that it needs, its PTX module, the suffix of its kernels' names, `lanes` if a CPU may
//! compute groups of sites, and the format.

macro_rules! format_lists {
    ($($list:ident { $($entries:tt)* })*) => {
        format_lists! { @ ($) $($list { $($entries)* })* }
    };
    (@ ($dollar:tt) $($list:ident { $($entries:tt)* })*) => {$(
        #[allow(unused_macros, reason = "a list of formats is there before the first kernel that has them")]
        macro_rules! $list {
            ($dollar then:ident $dollar($dollar arguments:tt)*) => {
                $crate::kernels! { $dollar then [$($entries)*] $dollar($dollar arguments)* }
            };
        }
    )*};
}

format_lists! {
    // Kernels that have a single instance.
    once {
        [] "" "": ();
    }
    // Matrices of numbers in 64 and 32 bits.
    real_numbers {
        [] "" "_double" lanes: f64;
        ["single"] "" "_single" lanes: f32;
    }
    // Matrices of numbers in 64 and 32 bits, with a part of the arithmetic in double precision.
    extended_numbers {
        [] "" "_double" lanes: f64;
        ["single"] "" "_single": f32;
    }
    // Fields of any kind, in each precision.
    precisions {
        [] "_double" "_double" lanes: Double;
        ["single"] "_single" "_single" lanes: Single;
        ["half"] "_half" "_half": Half;
        ["fp16"] "_fp16" "_fp16": Fp16;
    }
    // Fields in 64 and 32 bits.
    wide_precisions {
        [] "" "_double" lanes: Double;
        ["single"] "" "_single" lanes: Single;
    }
    // Spinors.
    spinors {
        [] "_double" "_spinor_double" lanes: Spinors<Double>;
        ["single"] "_single" "_spinor_single" lanes: Spinors<Single>;
        ["half"] "_half" "_spinor_half": Spinors<Half>;
        ["fp16"] "_fp16" "_spinor_fp16": Spinors<Fp16>;
    }
    // Spinors in double precision only.
    double_spinors {
        [] "" "_spinor_double": Spinors<Double>;
    }
    // Colour vectors in double precision only.
    double_colours {
        [] "" "_colour_double": Colours<Double>;
    }
    // Colour vectors.
    colours {
        [] "_double" "_colour_double" lanes: Colours<Double>;
        ["single"] "_single" "_colour_single" lanes: Colours<Single>;
        ["half"] "_half" "_colour_half": Colours<Half>;
    }
    // Conversions of spinors from one precision to another.
    spinor_pairs {
        [] "_double" "_spinor_double_double": Between<Spinors<Double>, Spinors<Double>>;
        ["single"] "_double" "_spinor_double_single": Between<Spinors<Double>, Spinors<Single>>;
        ["half"] "_double" "_spinor_double_half": Between<Spinors<Double>, Spinors<Half>>;
        ["fp16"] "_double" "_spinor_double_fp16": Between<Spinors<Double>, Spinors<Fp16>>;
        ["single"] "_single" "_spinor_single_double": Between<Spinors<Single>, Spinors<Double>>;
        ["single"] "_single" "_spinor_single_single": Between<Spinors<Single>, Spinors<Single>>;
        ["single" "half"] "_single" "_spinor_single_half": Between<Spinors<Single>, Spinors<Half>>;
        ["single" "fp16"] "_single" "_spinor_single_fp16": Between<Spinors<Single>, Spinors<Fp16>>;
        ["half"] "_half" "_spinor_half_double": Between<Spinors<Half>, Spinors<Double>>;
        ["half" "single"] "_half" "_spinor_half_single": Between<Spinors<Half>, Spinors<Single>>;
        ["half"] "_half" "_spinor_half_half": Between<Spinors<Half>, Spinors<Half>>;
        ["half" "fp16"] "_half" "_spinor_half_fp16": Between<Spinors<Half>, Spinors<Fp16>>;
        ["fp16"] "_fp16" "_spinor_fp16_double": Between<Spinors<Fp16>, Spinors<Double>>;
        ["fp16" "single"] "_fp16" "_spinor_fp16_single": Between<Spinors<Fp16>, Spinors<Single>>;
        ["fp16" "half"] "_fp16" "_spinor_fp16_half": Between<Spinors<Fp16>, Spinors<Half>>;
        ["fp16"] "_fp16" "_spinor_fp16_fp16": Between<Spinors<Fp16>, Spinors<Fp16>>;
    }
    // Conversions of colour vectors from one precision to another.
    colour_pairs {
        [] "_double" "_colour_double_double": Between<Colours<Double>, Colours<Double>>;
        ["single"] "_double" "_colour_double_single": Between<Colours<Double>, Colours<Single>>;
        ["half"] "_double" "_colour_double_half": Between<Colours<Double>, Colours<Half>>;
        ["single"] "_single" "_colour_single_double": Between<Colours<Single>, Colours<Double>>;
        ["single"] "_single" "_colour_single_single": Between<Colours<Single>, Colours<Single>>;
        ["single" "half"] "_single" "_colour_single_half": Between<Colours<Single>, Colours<Half>>;
        ["half"] "_half" "_colour_half_double": Between<Colours<Half>, Colours<Double>>;
        ["half" "single"] "_half" "_colour_half_single": Between<Colours<Half>, Colours<Single>>;
        ["half"] "_half" "_colour_half_half": Between<Colours<Half>, Colours<Half>>;
    }
    // Formats of the links of Wilson-like operators in 64 bits (`double_links`), in 32 bits (`single_links`), and in
    // both (`wide_links`).
    double_links {
        [] "_double" "_double_18" lanes: (Double, Recon18);
        ["reconstruct-12"] "_double" "_double_12" lanes: (Double, Recon12);
        ["reconstruct-8"] "_double" "_double_8": (Double, Recon8);
    }
    single_links {
        ["single"] "_single" "_single_18" lanes: (Single, Recon18);
        ["single" "reconstruct-12"] "_single" "_single_12" lanes: (Single, Recon12);
        ["single" "reconstruct-8"] "_single" "_single_8": (Single, Recon8);
    }
    wide_links {
        [] "_double" "_double_18" lanes: (Double, Recon18);
        ["reconstruct-12"] "_double" "_double_12" lanes: (Double, Recon12);
        ["reconstruct-8"] "_double" "_double_8": (Double, Recon8);
        ["single"] "_single" "_single_18" lanes: (Single, Recon18);
        ["single" "reconstruct-12"] "_single" "_single_12" lanes: (Single, Recon12);
        ["single" "reconstruct-8"] "_single" "_single_8": (Single, Recon8);
    }
    // Formats of the links of Wilson-like operators in 16 bits. Storage of 8 real numbers is left out, because it is
    // slower than storage of 12.
    narrow_links {
        ["half"] "_half" "_half_18": (Half, Recon18);
        ["half" "reconstruct-12"] "_half" "_half_12": (Half, Recon12);
        ["fp16"] "_fp16" "_fp16_18": (Fp16, Recon18);
        ["fp16" "reconstruct-12"] "_fp16" "_fp16_12": (Fp16, Recon12);
    }
    // Formats of links that every operator must support.
    plain_links {
        [] "_double" "_double_18" lanes: (Double, Recon18);
        ["reconstruct-12"] "_double" "_double_12" lanes: (Double, Recon12);
        ["single"] "_single" "_single_18" lanes: (Single, Recon18);
        ["single" "reconstruct-12"] "_single" "_single_12" lanes: (Single, Recon12);
        ["half"] "_half" "_half_18": (Half, Recon18);
        ["half" "reconstruct-12"] "_half" "_half_12": (Half, Recon12);
    }
    // Formats of the links of Wilson-like operators in temporal gauge.
    temporal_links {
        ["temporal-gauge" "reconstruct-12"] "_double_t" "_double_12t": (Double, Recon12T);
        ["temporal-gauge" "reconstruct-8"] "_double_t" "_double_8t": (Double, Recon8T);
        ["temporal-gauge" "single" "reconstruct-12"] "_single_t" "_single_12t": (Single, Recon12T);
        ["temporal-gauge" "single" "reconstruct-8"] "_single_t" "_single_8t": (Single, Recon8T);
        ["temporal-gauge" "half" "reconstruct-12"] "_half_t" "_half_12t": (Half, Recon12T);
        ["temporal-gauge" "fp16" "reconstruct-12"] "_fp16_t" "_fp16_12t": (Fp16, Recon12T);
    }
    // Formats of the links of staggered operators with links in SU(3).
    staggered_links {
        [] "_double" "_double_18" lanes: (Double, Recon18);
        ["reconstruct-12"] "_double" "_double_12" lanes: (Double, Recon12);
        ["reconstruct-8"] "_double" "_double_8": (Double, Recon8);
        ["single"] "_single" "_single_18" lanes: (Single, Recon18);
        ["single" "reconstruct-12"] "_single" "_single_12" lanes: (Single, Recon12);
        ["single" "reconstruct-8"] "_single" "_single_8": (Single, Recon8);
        ["half"] "_half" "_half_18": (Half, Recon18);
        ["half" "reconstruct-12"] "_half" "_half_12": (Half, Recon12);
        ["half" "reconstruct-8"] "_half" "_half_8": (Half, Recon8);
        ["half-links" "single"] "_single_h" "_single_18h": (Single, Recon18H);
        ["half-links" "single" "reconstruct-12"] "_single_h" "_single_12h": (Single, Recon12H);
        ["half-links" "single" "reconstruct-8"] "_single_h" "_single_8h": (Single, Recon8H);
    }
    // Formats of the links of staggered operators with links in U(3).
    unitary_links {
        ["reconstruct-12"] "_double_u3" "_double_13": (Double, Recon13);
        ["reconstruct-8"] "_double_u3" "_double_9": (Double, Recon9);
        ["single" "reconstruct-12"] "_single_u3" "_single_13": (Single, Recon13);
        ["single" "reconstruct-8"] "_single_u3" "_single_9": (Single, Recon9);
        ["half" "reconstruct-12"] "_half_u3" "_half_13": (Half, Recon13);
        ["half" "reconstruct-8"] "_half_u3" "_half_9": (Half, Recon9);
        ["half-links" "single" "reconstruct-12"] "_single_u3_h" "_single_13h": (Single, Recon13H);
        ["half-links" "single" "reconstruct-8"] "_single_u3_h" "_single_9h": (Single, Recon9H);
    }
    // Formats of the long links of improved staggered operators beside fat links of 21 bits, and the format of these fat
    // links.
    links_beside_fine {
        ["half-links" "single" "reconstruct-12"] "_single_u3_f" "_single_13f": (Single, Recon13F);
        ["half-links" "single" "reconstruct-8"] "_single_u3_f" "_single_9f": (Single, Recon9F);
    }
    fine_links {
        ["half-links" "single"] "_single_f" "_single_18f": (Single, Fine18);
    }
    // Formats of forces: precision of the links, then precision of the momenta.
    force_precisions {
        [] "" "_double_double" lanes: Between<f64, f64>;
        ["single"] "" "_single_double" lanes: Between<f32, f64>;
        ["single"] "" "_single_single" lanes: Between<f32, f32>;
    }
    // Formats of a force that needs too many registers in double precision. The other precisions are in
    // `single_forces`.
    double_force {
        [] "" "_double_double" lanes: Between<f64, f64>;
    }
    single_forces {
        ["single"] "" "_single_double" lanes: Between<f32, f64>;
        ["single"] "" "_single_single" lanes: Between<f32, f32>;
    }
    // Formats of fermion forces: precision of the fields, then precision of the momenta.
    fermion_forces {
        [] "" "_double_double" lanes: Between<Colours<Double>, f64>;
        ["single"] "" "_single_double" lanes: Between<Colours<Single>, f64>;
        ["single"] "" "_double_single": Between<Colours<Double>, f32>;
        ["single"] "" "_single_single" lanes: Between<Colours<Single>, f32>;
    }
    // Formats of changes of the momenta: precision of the links and of the gradient, then precision of the momenta.
    force_pairs {
        [] "" "_double_double" lanes: Between<f64, f64>;
        ["single"] "" "_single_double" lanes: Between<f32, f64>;
        ["single"] "" "_double_single": Between<f64, f32>;
        ["single"] "" "_single_single" lanes: Between<f32, f32>;
    }
    // Conversions between double and single precision.
    mixed_pairs {
        ["single"] "" "_double_single": Between<f64, f32>;
        ["single"] "" "_single_double": Between<f32, f64>;
    }
    // Formats of multigrid: near-null vectors used with vectors in single precision, coarse links, and objects of the
    // setup.
    null_vectors {
        ["single"] "" "_spinor_single": Spinors<Single>;
        ["single" "half"] "" "_spinor_half": Spinors<Half>;
    }
    coarse_links {
        ["single"] "" "_single": Single;
        ["single" "half"] "" "_half": Half;
    }
    single_numbers {
        ["single"] "" "_single": Single;
    }
    // Matrices of numbers in double precision only.
    double_numbers {
        [] "" "_double" lanes: f64;
    }
    // Colour vectors in 32 and 64 bits, for kernels of staggered fermions.
    wide_colours {
        [] "" "_double" lanes: Colours<Double>;
        ["single"] "" "_single" lanes: Colours<Single>;
    }
    // Colour vectors in 32 and 64 bits, for kernels that also exist for spinors, so that their names include the kind.
    wide_colour_fields {
        [] "_double" "_colour_double" lanes: Colours<Double>;
        ["single"] "_single" "_colour_single" lanes: Colours<Single>;
    }
    // Formats of staggered links that Wilson-like operators do not have. A kernel that uses both lists has each format
    // once.
    half_staggered_links {
        ["half" "reconstruct-8"] "_half" "_half_8": (Half, Recon8);
        ["half-links" "single"] "_single_h" "_single_18h": (Single, Recon18H);
        ["half-links" "single" "reconstruct-12"] "_single_h" "_single_12h": (Single, Recon12H);
        ["half-links" "single" "reconstruct-8"] "_single_h" "_single_8h": (Single, Recon8H);
    }
}
