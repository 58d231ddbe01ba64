//! Loops that are unrolled, so that indexed values stay in registers.

/// Repeats the body for each number `$k` below 2, 4, 6 or 8, as a constant.
macro_rules! unrolled {
    ($k:ident < 2: $body:block) => {
        $crate::unrolled::unrolled!(@ $k $body 0 1)
    };
    ($k:ident < 4: $body:block) => {
        $crate::unrolled::unrolled!(@ $k $body 0 1 2 3)
    };
    ($k:ident < 6: $body:block) => {
        $crate::unrolled::unrolled!(@ $k $body 0 1 2 3 4 5)
    };
    ($k:ident < 8: $body:block) => {
        $crate::unrolled::unrolled!(@ $k $body 0 1 2 3 4 5 6 7)
    };
    (@ $k:ident $body:block $($index:literal)*) => {
        $({
            #[allow(non_upper_case_globals, reason = "stands for a variable of a loop")]
            const $k: usize = $index;
            $body
        })*
    };
}
pub(crate) use unrolled;
