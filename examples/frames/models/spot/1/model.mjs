// Finds the spot of light in a grey picture: the centre of its brightest pixels.

/** @type {import('skein').ModelModule['execute']} */
export const execute = (requests) =>
  requests.map(({ inputs }) => {
    const { data, shape } = /** @type {{ data: Uint8Array, shape: number[] }} */ (inputs.PICTURE);
    const width = shape[1] ?? 0;
    let [sum, most, count, x, y] = [0, 0, 0, 0, 0];
    for (const [i, value] of data.entries()) {
      sum += value;
      if (value < most) continue;
      if (value > most) [most, count, x, y] = [value, 0, 0, 0];
      count++;
      x += i % width;
      y += Math.floor(i / width);
    }
    return {
      outputs: {
        CENTRE: { data: Float32Array.of(x / count, y / count), shape: [2] },
        MEAN: { data: Float32Array.of(sum / data.length), shape: [1] },
      },
    };
  });
