/** A change of one field of a batch, for tests of what is refused. */
type Spoil = (target: object) => void;

export const set =
  (field: string, value: unknown): Spoil =>
  (target) =>
    Object.assign(target, { [field]: value });

/** The same of one entry of an array. */
export const at =
  (field: string, index: number, value: number): Spoil =>
  (target) => {
    (target as Record<string, Int32Array>)[field]![index] = value;
  };
