"""Images that lie in tables, one row an image and one column a pixel."""

# SciPy has no types.
# mypy: disable-error-code="misc"

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.ndimage import shift


def with_shifts(
    X: pd.DataFrame, y: np.ndarray, shape: tuple[int, int]
) -> tuple[pd.DataFrame, np.ndarray]:
    """The images, and each of them shifted by one pixel up, down, left and right."""
    pixels = X.to_numpy().reshape(len(X), *shape)
    moves = [(0, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)]
    shifted = [shift(pixels, move, order=0).reshape(X.shape) for move in moves]
    return pd.DataFrame(np.concatenate(shifted), columns=X.columns), np.concatenate([y] * 5)


def oriented_gradients(X: pd.DataFrame, shape: tuple[int, int]) -> np.ndarray:
    """Histograms of 8 directions in overlapping cells, each block scaled to length 1."""
    images = np.asarray(X, dtype=np.float32).reshape(len(X), *shape)
    down, right = np.gradient(images, axis=(1, 2))
    strength = np.hypot(down, right)
    angle = (np.arctan2(down, right) % (2 * np.pi)) / (2 * np.pi) * 8
    low = np.floor(angle).astype(int) % 8
    part = angle - np.floor(angle)
    size = max(shape[0] // 4, 2)
    rows, columns = (range(0, side - size + 1, max(size // 2, 1)) for side in shape)
    blocks = []
    for direction in range(8):
        share = np.where(low == direction, 1 - part, np.where((low + 1) % 8 == direction, part, 0))
        total = (strength * share).cumsum(axis=1).cumsum(axis=2)
        total = np.pad(total, ((0, 0), (1, 0), (1, 0)))
        blocks.append(np.stack([
            total[:, r + size, c + size] - total[:, r, c + size]
            - total[:, r + size, c] + total[:, r, c]
            for r in rows for c in columns
        ], axis=1))  # fmt: skip
    cells = np.stack(blocks, axis=2)
    cells /= np.sqrt((cells**2).sum(axis=2, keepdims=True)) + 0.1
    return cells.reshape(len(images), -1)
