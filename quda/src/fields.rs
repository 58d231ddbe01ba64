//! Arithmetic on fields of the host.
use ferrite::num_complex::Complex64;
use ferrite_tasks::host_fields::HostFields;
use ferrite_tasks::with_fields;

/// Returns the number of components at a site.
fn components(fields: &HostFields) -> usize {
    match fields {
        HostFields::Wilson(_) => 12,
        HostFields::Staggered(_) => 3,
    }
}

/// Returns the number of fields.
pub fn count(fields: &HostFields) -> usize {
    with_fields!(fields, fields => fields.len())
}

/// Calls `work` for each complex number of all fields with its index in its field.
fn for_each(fields: &mut HostFields, mut work: impl FnMut(usize, &mut Complex64)) {
    with_fields!(fields, fields => {
        for field in fields {
            field.numbers_mut().iter_mut().enumerate().for_each(|(n, number)| work(n, number));
        }
    });
}

/// Multiplies fields by a number.
pub fn scale(fields: &mut HostFields, factor: f64) {
    if factor != 1.0 {
        for_each(fields, |_, number| *number *= factor);
    }
}

/// Multiplies Wilson fields by γ5 = diag(1, 1, −1, −1) or its negative, which cancels between two products.
pub fn gamma5(fields: &mut HostFields) {
    for_each(fields, |n, number| {
        if n % 12 >= 6 {
            *number = -*number;
        }
    });
}

/// Multiplies fields by (−1)^(x+y+z+t), which is γ5 ⊗ γ5 of staggered fields.
pub fn epsilon(fields: &mut HostFields) {
    on_parity(fields, 1, |number| *number = -*number);
}

/// Sets fields to 0 on the sites of the other parity.
pub fn keep_parity(fields: &mut HostFields, parity: usize) {
    on_parity(fields, 1 - parity, |number| *number = Complex64::ZERO);
}

fn on_parity(fields: &mut HostFields, parity: usize, work: impl Fn(&mut Complex64)) {
    let count = components(fields);
    with_fields!(fields, fields => {
        for field in fields {
            let lattice = field.lattice();
            for (site, numbers) in field.numbers_mut().chunks_mut(count).enumerate() {
                if lattice.parity(lattice.coordinates(site)) == parity {
                    numbers.iter_mut().for_each(&work);
                }
            }
        }
    });
}

/// Computes x ← x + a y.
pub fn add(to: &mut HostFields, factor: f64, fields: &HostFields) {
    match (to, fields) {
        (HostFields::Wilson(to), HostFields::Wilson(fields)) => {
            for (to, field) in to.iter_mut().zip(fields) {
                to.numbers_mut().iter_mut().zip(field.numbers()).for_each(|(to, number)| *to += factor * number);
            }
        }
        (HostFields::Staggered(to), HostFields::Staggered(fields)) => {
            for (to, field) in to.iter_mut().zip(fields) {
                to.numbers_mut().iter_mut().zip(field.numbers()).for_each(|(to, number)| *to += factor * number);
            }
        }
        _ => unreachable!("fields of one kind"),
    }
}

/// Returns the squares of the norms of the parts of fields on this process.
pub fn squares(fields: &HostFields) -> Vec<f64> {
    with_fields!(fields, fields => fields.iter().map(|field| field.norm2()).collect())
}

/// Returns Σ_i r_i b†x_i over the sites of this process, with the first of the fields b.
pub fn dot(factors: &[f64], b: &HostFields, x: &HostFields) -> Complex64 {
    let sum = |b: &[Complex64], x: &mut dyn Iterator<Item = &[Complex64]>| {
        let products =
            factors.iter().zip(x).map(|(r, x)| *r * b.iter().zip(x).map(|(b, x)| b.conj() * x).sum::<Complex64>());
        products.sum()
    };
    match (b, x) {
        (HostFields::Wilson(b), HostFields::Wilson(x)) => sum(b[0].numbers(), &mut x.iter().map(|x| x.numbers())),
        (HostFields::Staggered(b), HostFields::Staggered(x)) => sum(b[0].numbers(), &mut x.iter().map(|x| x.numbers())),
        _ => unreachable!("fields of one kind"),
    }
}
