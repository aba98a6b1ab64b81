/** Units that a value counts besides the length of its text. */
export const UNITS_PER_VALUE = 32;

/**
 * Units of a JSON value: the length of its texts, and UNITS_PER_VALUE for each value in it. Counts no further than
 * `limit`.
 */
export function jsonUnits(value: unknown, limit: number): number {
  let units = 0;
  const open: unknown[] = [value];
  while (open.length > 0 && units <= limit) {
    const one = open.pop();
    units += UNITS_PER_VALUE;
    if (typeof one === 'string') units += one.length;
    else if (Array.isArray(one)) {
      if (one.length * UNITS_PER_VALUE > limit) return Number.POSITIVE_INFINITY;
      for (const item of one) open.push(item);
    } else if (typeof one === 'object' && one !== null) {
      for (const [name, item] of Object.entries(one)) {
        units += name.length;
        open.push(item);
      }
    }
  }
  return units;
}

/** Least number of characters of a JSON value when it is written. Counts no further than `limit`. */
export function leastJsonLength(value: unknown, limit: number): number {
  let length = 0;
  const open: unknown[] = [value];
  while (open.length > 0 && length <= limit) {
    const one = open.pop();
    // A value has at least one character, a list or an object two.
    length += 1;
    if (typeof one === 'string') length += one.length + 1;
    else if (Array.isArray(one)) {
      length += 1;
      if (length + one.length > limit) return length + one.length;
      for (const item of one) open.push(item);
    } else if (typeof one === 'object' && one !== null) {
      length += 1;
      for (const [name, item] of Object.entries(one)) {
        length += name.length + 3;
        open.push(item);
      }
    }
  }
  return length;
}

/** UTF-16 units of all texts of a JSON value, names included, plus 1 for each value. */
export function textUnits(value: unknown): number {
  let units = 0;
  const open: unknown[] = [value];
  while (open.length > 0) {
    const one = open.pop();
    units++;
    if (typeof one === 'string') units += one.length;
    else if (Array.isArray(one)) for (const item of one) open.push(item);
    else if (typeof one === 'object' && one !== null) {
      for (const [name, item] of Object.entries(one)) {
        units += name.length;
        open.push(item);
      }
    }
  }
  return units;
}
