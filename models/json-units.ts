/** Units that a value counts beside its text. */
export const UNITS_PER_VALUE = 32;

/** Units of a JSON value: of its texts, and so many for each value in it. Counts no further than `limit`. */
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
