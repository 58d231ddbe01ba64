"""Compares the exponential clover term of the program with d exp(X/d) by its power series.

usage: exp_clover.py LINKS WILSON EXPONENTIAL D SPACE TIME

LINKS are links as `.npy`. WILSON and EXPONENTIAL are the images of the twelve fields that are 1 in one spin and colour at
every site, under the two operators: their hopping terms are the same, and the rest is the term itself. D is the diagonal of
Wilson's operator; SPACE and TIME are the coefficients of the clover term.

Prints the largest difference of an element, and the largest element of exp(X/d) - 1 - X/d times D, by which the two clover
terms differ. docs/conventions.md has the formulas.
"""

import sys

import numpy as np

links, wilson, exponential = (np.load(path) for path in sys.argv[1:4])
d, space, time = (float(word) for word in sys.argv[4:7])

# gamma matrices of the DeGrand-Rossi basis: x, y, z, t.
i = 1j
gamma = np.array([
    [[0, 0, 0, i], [0, 0, i, 0], [0, -i, 0, 0], [-i, 0, 0, 0]],
    [[0, 0, 0, -1], [0, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 0]],
    [[0, 0, i, 0], [0, 0, 0, -i], [-i, 0, 0, 0], [0, i, 0, 0]],
    [[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]],
])


def moved(field, mu, steps):
    """field(x + steps mu); axes are t, z, y, x."""
    return np.roll(field, -steps, axis=3 - mu)


def dagger(matrices):
    return matrices.conj().swapaxes(-1, -2)


def link(mu, forward):
    """The link that leads from x to x + mu, or to x - mu."""
    here = links[..., mu, :, :]
    return here if forward else dagger(moved(here, mu, -1))


def path(steps):
    """The product of links along steps (direction, forward) that begin at x."""
    product, at = np.broadcast_to(np.eye(3), links[..., 0, :, :].shape), [0, 0, 0, 0]
    for mu, forward in steps:
        step = link(mu, forward)
        for nu in range(4):
            step = moved(step, nu, at[nu])
        product = product @ step
        at[mu] += 1 if forward else -1
    return product


def field_strength(mu, nu):
    """(Q - Q^+)/8, with the four leaves Q that begin and end at x."""
    turn = [(mu, True), (nu, True), (mu, False), (nu, False)]
    leaves = sum(path(turn[k:] + turn[:k]) for k in range(4))
    return (leaves - dagger(leaves)) / 8


x = np.zeros(links.shape[:4] + (12, 12), complex)
for mu in range(4):
    for nu in range(mu + 1, 4):
        sigma = 0.5j * (gamma[mu] @ gamma[nu] - gamma[nu] @ gamma[mu])
        c = time if nu == 3 else space
        x += np.kron(sigma, 0.5j * c * field_strength(mu, nu))

term = np.eye(12) + np.zeros_like(x)
total, n = term.copy(), 0
while np.abs(term).max() > 1e-18:
    n += 1
    term = term @ x / (d * n)
    total += term

# Image number j is column j of the blocks.
found = np.moveaxis((exponential - wilson).reshape(12, *x.shape[:4], 12), 0, -1) + d * np.eye(12)
print(np.abs(found - d * total).max(), np.abs(d * (total - np.eye(12)) - x).max())
